"""The maximum depth of JSON from outside.

The limits of Python and pydantic depend on the call stack, so that one may accept a value that the
other rejects later.
"""

from __future__ import annotations

from collections.abc import Iterable

MOST_LEVELS = 64
"""Levels of lists and objects. Tools need only a few."""


def nests_too_deep(value: object) -> bool:
    level = [value]
    for _ in range(MOST_LEVELS):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return [inner for inner in value.values() if isinstance(inner, dict | list)]
    if isinstance(value, list):
        return [inner for inner in value if isinstance(inner, dict | list)]
    return ()
