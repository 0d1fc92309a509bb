"""Named parameters for every database: `:name` in the statement, as in SQLite.

Their values can have the types that programs get from rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from agents.features.databases.drivers.errors import QueryFailed

# Alternatives in which a colon is no parameter come first. An error here is no security problem:
# values are never part of the statement.
_PARTS = re.compile(
    r"""
    '(?:[^']|'')*' | "(?:[^"]|"")*"
    | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$
    | --[^\n]* | /\*.*?\*/
    | :: | :(?P<name>[A-Za-z_]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)


def numbered(query: str, params: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the statement with `$1`, `$2` … for the names in `params`, and the ordered values."""
    places: dict[str, int] = {}

    def place(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None or name not in params:
            return found[0]
        return f"${places.setdefault(name, len(places) + 1)}"

    text = _PARTS.sub(place, query)
    return text, [params[name] for name in places]


def with_simple_values(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return values for databases with few types: lists and objects are JSON, most others text.

    Raises QueryFailed for a value that cannot be a parameter.
    """
    return {
        name: json_text(value) if isinstance(value, dict | list | tuple) else _simple(value)
        for name, value in (params or {}).items()
    }


def json_text(value: Any) -> str:
    """Return a list or an object as JSON, with text for values that JSON does not support."""
    return json.dumps(value, default=_in_json)


def _in_json(value: Any) -> Any:
    found = value.hex() if isinstance(value, bytes) else _simple(value)
    if found is value:
        kind = type(value).__name__
        raise QueryFailed(f"A value of the type {kind} cannot be a parameter.", "invalid")
    return found


def _simple(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, timedelta):
        seconds, fraction = divmod(abs(value), timedelta(seconds=1))
        text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        text += f".{fraction.microseconds:06}" if fraction else ""
        return f"-{text}" if value < timedelta() else text
    return str(value) if isinstance(value, Decimal | date | time | UUID) else value


def without_value(query: str, params: Mapping[str, Any] | None, *, mysql: bool) -> list[str]:
    """Return the names in the statement that `params` do not have, as `:name`."""
    parts = (_MYSQL_PARTS if mysql else _PARTS).finditer(query)
    names = dict.fromkeys(found["name"] for found in parts if found["name"])
    return [f":{name}" for name in names if name not in (params or {})]


_MYSQL_PARTS = re.compile(
    r"""
    '(?:[^'\\]|''|\\.)*' | "(?:[^"\\]|""|\\.)*" | `[^`]*`
    | (?:\#|--(?=\s))[^\n]* | /\*.*?\*/
    | :(?P<name>[A-Za-z_]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)


def marked(query: str, params: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the statement with `?` for each use of a name in `params`, and the values in order."""
    values: list[Any] = []

    def place(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None or name not in params:
            return found[0]
        values.append(params[name])
        return "?"

    return _MYSQL_PARTS.sub(place, query), values
