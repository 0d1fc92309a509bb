"""Patterns for columns that agents may not read: `column`, `table.column`, `schema.table.column`.

`*` stands for anything within one part. Names are compared without regard to case.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from agents.features.databases.drivers.target import DatabaseTarget


def is_hidden(target: DatabaseTarget, schema: str, table: str, column: str) -> bool:
    """Whether one of the target's patterns fits this column."""
    full = (schema.casefold(), table.casefold(), column.casefold())
    for pattern in target.hidden_columns:
        parts = tuple(_literal(part) for part in pattern.strip().casefold().split("."))
        names = full[-len(parts) :]
        if len(parts) <= len(full) and all(map(fnmatchcase, names, parts)):
            return True
    return False


def _literal(part: str) -> str:
    """Only `*` is special: `fnmatch` also knows `?` and `[`."""
    return part.replace("[", "[[]").replace("?", "[?]")
