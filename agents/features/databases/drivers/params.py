"""Named parameters for every database: `:name` in the statement, as in SQLite."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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
