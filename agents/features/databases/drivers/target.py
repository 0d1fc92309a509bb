"""The connection data and the limits of one database.

Patterns for columns that agents may not read: `column`, `table.column`, `schema.table.column`.

`*` matches any characters within one part. Names are compared without regard to case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class UrlParts:
    """The parts of a URL. The options of `query` may have several values."""

    drivername: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    host: str | None = None
    port: int | None = None
    database: str | None = None
    query: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class DatabaseTarget:
    """One connection as a call uses it. The URL holds the password, so no `repr` shows it."""

    name: str
    url: str = field(repr=False)
    statement_seconds: float = 30.0
    max_rows: int = 10_000
    max_bytes: int = 1_000_000
    hidden_columns: tuple[str, ...] = ()
    """Columns that queries may not read."""
    allow_privileged: bool = False
    """Also with a role that can read the server's files or administer it."""
    allow_writes: bool = False
    """Whether writes can be tried, and carried out after approval of their changes."""
    allow_routines: bool = False
    """Also writes that call the database's functions and triggers, which a trial runs too."""
    native: bool = False
    """Whether values of rows are Python's, for programs, instead of text, for models."""
    parts: UrlParts | None = field(default=None, repr=False)
    """The URL, parsed. Only in a helper process, which then need not load a parser."""


def is_hidden(target: DatabaseTarget, schema: str, table: str, column: str) -> bool:
    """Return whether one of the target's `hidden_columns` patterns matches this column."""
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
