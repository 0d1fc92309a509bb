"""Conversion of values that a program returns to JSON of a limited size."""

from __future__ import annotations

import math
from typing import Any

from sandbox.backends.protocol import Result

_DEPTH = 20
_MOST_INT = 2**63


class NotPlain(Exception):
    """Raised for a value that cannot be a result. The message completes "it returned …"."""


def plain_result(value: Any, most: int) -> Result:
    """Return a copy of a dictionary with at most about `most` characters. Raises NotPlain."""
    if not isinstance(value, dict):
        if hasattr(value, "close") and hasattr(value, "__await__"):
            value.close()
        raise NotPlain(f"a value of type {type(value).__name__}, but a dictionary is needed")
    return _Copy(most).dictionary(value, 0)


def text_of(error: BaseException, most: int) -> str:
    """Return the text of an exception, with at most `most` characters.

    If the exception's own code fails, returns a note about that.
    """
    try:
        return _clean(str(error)[:most])
    except Exception as problem:  # noqa: BLE001  # code of a program
        return f"(its text failed with {type(problem).__name__})"


class _Copy:
    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def dictionary(self, value: dict[Any, Any], depth: int) -> Result:
        found = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise NotPlain(f"a dictionary with a key of type {type(key).__name__}")
            found[self._text(key)] = self._value(item, depth + 1)
        return found

    def _value(self, value: Any, depth: int) -> Any:
        if depth > _DEPTH:
            raise NotPlain(f"values nested deeper than {_DEPTH}")
        self._spend(4)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int):
            if not -_MOST_INT <= value < _MOST_INT:
                raise NotPlain("a number with more than 64 bits")
            return int(value)
        if isinstance(value, float):
            if not math.isfinite(value):
                raise NotPlain("a number that is not finite")
            return float(value)
        if isinstance(value, list | tuple):
            return [self._value(item, depth + 1) for item in value]
        if isinstance(value, dict):
            return self.dictionary(value, depth)
        raise NotPlain(f"a value of type {type(value).__name__}, but JSON values are needed")

    def _text(self, value: str) -> str:
        self._spend(len(value))
        return _clean(value)

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise NotPlain(f"more than {self._most} characters: return less at a time")


def _clean(value: str) -> str:
    return str.encode(value, "utf-8", "replace").decode().replace("\0", "\ufffd")
