"""The two forms of a value: text as the database writes it, for models; Python's, for programs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from agents.features.databases.drivers.table import Cell, Pairs
from agents.features.databases.drivers.target import DatabaseTarget

_PLAIN = frozenset(
    {type(None), bool, int, float, str, bytes, Decimal, datetime, date, time, timedelta, UUID}
)
_MOST_LEVELS = 50
"""Lists within lists. Deeper values are text: neither JSON nor Python reads any depth."""


class _NotPlain(Exception):
    """A value that programs get as text."""


def text_of(value: Any) -> Cell:
    """Return a value as a `Cell`. Numbers, texts and None stay as they are.

    Bytes become hexadecimal digits; all other types, infinities and NaN become text.
    """
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def native_of(value: Any) -> Any:
    """Return a value that a helper can send, and a program gets as a value of Python.

    Values of types that cannot be sent become text.
    """
    return native_or(value, text_of)


def native_or(value: Any, text: Callable[[Any], Any]) -> Any:
    """Return the value as `native_of`, or `text(value)` if it has a type that cannot be sent."""
    try:
        return _native(value, _MOST_LEVELS)
    except _NotPlain:
        return text(value)


def form_of(target: DatabaseTarget) -> Callable[[Any], Any]:
    """Return the function that gives values the target's form."""
    return native_of if target.native else text_of


def _native(value: Any, levels: int) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if not levels:
        raise _NotPlain
    if kind in (list, tuple):
        return [_native(item, levels - 1) for item in value]
    if kind is dict and all(type(key) in _PLAIN for key in value):
        return Pairs([(key, _native(item, levels - 1)) for key, item in value.items()])
    raise _NotPlain
