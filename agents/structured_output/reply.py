"""The JSON value in a final reply."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

MAX_BYTES = 256 * 1024
MAX_DEPTH = 64

_FENCE = re.compile(r"^[ \t]*```([^`\n]*)$", re.MULTILINE)


class NoValue(ValueError):
    """The text is not exactly one JSON value within the limits. The message is for the model."""


def value_in(text: str) -> Any:
    """Return the JSON value in `text`: the whole text, or its only fenced block.

    Raises `NoValue` if there is none or several, and for a value that is too large, nests too deep,
    or cannot be stored.
    """
    if not text.strip():
        raise NoValue("The answer is empty.")
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise NoValue(f"The answer has {size:,} bytes and may have {MAX_BYTES:,}.")
    try:
        return _parse(text)
    except NoValue as problem:
        inside = _fenced(text)
        if inside is None:
            raise problem from None
        return _parse(inside)


def _fenced(text: str) -> str | None:
    """Return the content of the only fenced block. None if there is no block.

    Raises `NoValue` if there are several, or if the block is not closed.
    """
    marks = list(_FENCE.finditer(text))
    if not marks:
        return None
    if len(marks) != 2 or marks[1][1].strip():
        raise NoValue("The answer has several fenced blocks. Give exactly one JSON value.")
    return text[marks[0].end() : marks[1].start()]


def _parse(text: str) -> Any:
    try:
        value = json.loads(
            text.strip(), parse_constant=_refuse_constant, object_pairs_hook=_distinct
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise NoValue(f"The answer is not JSON: {error.msg} at {place}.") from None
    except RecursionError:
        raise NoValue(f"The answer nests deeper than {MAX_DEPTH} levels.") from None
    except NoValue:
        raise
    except ValueError:  # an integer with thousands of digits
        raise NoValue("The answer holds a number with too many digits.") from None
    _check_storable(value)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise NoValue(f"The answer holds {name}, which is not JSON.")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Reject duplicate names, which parsers handle differently."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise NoValue("The answer has an object with a duplicate name.")
    return made


def _check_storable(value: Any) -> None:
    level, depth = [value], 0
    while level:
        if depth > MAX_DEPTH:
            raise NoValue(f"The answer nests deeper than {MAX_DEPTH} levels.")
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.keys()
                below += item.values()
            elif isinstance(item, list):
                below += item
            elif isinstance(item, float) and not math.isfinite(item):
                raise NoValue("The answer holds a number that is too large.")
            elif isinstance(item, str) and any(
                char == "\x00" or "\ud800" <= char <= "\udfff" for char in item
            ):
                raise NoValue("The answer holds a NUL or half of a character.")
        level, depth = below, depth + 1
