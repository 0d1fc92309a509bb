"""Named parameters: `:name` in the statement, as SQLite has them, for every database."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# What a colon may stand in without being a parameter comes first. Only convenience hangs on this:
# values always travel apart from the statement.
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
    """The statement with `$1`, `$2` … for the names in `params`, and their values in order."""
    places: dict[str, int] = {}

    def place(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None or name not in params:
            return found[0]
        return f"${places.setdefault(name, len(places) + 1)}"

    text = _PARTS.sub(place, query)
    return text, [params[name] for name in places]


_MYSQL_PARTS = re.compile(
    r"""
    '(?:[^'\\]|''|\\.)*' | "(?:[^"\\]|""|\\.)*" | `[^`]*`
    | (?:\#|--(?=\s))[^\n]* | /\*.*?\*/
    | :(?P<name>[A-Za-z_]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)


def marked(query: str, params: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """The statement with `?` for each use of a name in `params`, and a value for each of them."""
    values: list[Any] = []

    def place(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None or name not in params:
            return found[0]
        values.append(params[name])
        return "?"

    return _MYSQL_PARTS.sub(place, query), values
