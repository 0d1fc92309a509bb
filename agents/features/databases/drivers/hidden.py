"""Patterns for columns that agents may not read: `column`, `table.column`, `schema.table.column`.

`*` matches any characters within one part. Names are compared without regard to case.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from agents.features.databases.drivers.target import DatabaseTarget


def is_hidden(target: DatabaseTarget, schema: str, table: str, column: str) -> bool:
    """Return whether one of the target's patterns matches this column."""
    full = (schema.casefold(), table.casefold(), column.casefold())
    for pattern in target.hidden_columns:
        parts = tuple(_literal(part) for part in pattern.strip().casefold().split("."))
        names = full[-len(parts) :]
        if len(parts) <= len(full) and all(map(fnmatchcase, names, parts)):
            return True
    return False


def _literal(part: str) -> str:
    """Escape a part of a pattern except `*`: `fnmatch` also interprets `?` and `[`."""
    return part.replace("[", "[[]").replace("?", "[?]")
