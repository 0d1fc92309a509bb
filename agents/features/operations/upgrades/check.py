"""The findings of `vel upgrade --check`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from django.core.checks import ERROR, CheckMessage

from agents.disk_space import room
from agents.doors.database_schema import is_development_database, unknown_migrations
from agents.features.operations.upgrades.changed_defaults import (
    CHANGED_DEFAULTS,
    ChangedDefault,
)
from agents.features.operations.upgrades.plan import (
    MOST_COUNTED,
    PendingMigration,
    has_no_database,
    pending_migrations,
    table_rows,
)
from agents.kernel.findings import Finding, Level, system_checks
from agents.selectors.metrics import database_bytes
from agents.settings import DiskSettings

SETTING_WARNINGS = ("vel.W006", "vel.W007")
"""System checks of unknown and deprecated settings. `velproject.checks.environment` has them."""
ROWS_PER_SECOND = 25_000
"""Rows that a migration rewrites in a second.

SQLite rewrote 1,000,000 rows of 500 bytes with an index in 16 s. The estimate uses less than half
of that speed.
"""
_SHOWN_TABLES = 5
_SHOWN_MIGRATIONS = 10


def examine(since: str = "") -> Iterator[Finding]:
    """Yield what an operator has to know before this version starts. Changes nothing.

    Args:
        since: The version that runs now. Changed defaults of later versions are reported; without
            a version, all that are known.

    Raises:
        django.db.Error: The database cannot be reached.
    """
    yield from check_database()
    yield from check_settings()
    yield from check_defaults(CHANGED_DEFAULTS, os.environ, since)


def check_database() -> Iterator[Finding]:
    """Check the migrations, and the space and the time that they need."""
    if has_no_database():
        yield Finding("migrations", Level.OK, "there is no database yet: the first start makes it")
        return
    if is_development_database():
        yield Finding(
            "migrations",
            Level.BROKEN,
            "the database was made by a development version before 0.1.0",
            "Move it away, or use another database.",
        )
        return
    if unknown := unknown_migrations():
        yield Finding(
            "migrations",
            Level.BROKEN,
            f"the database was prepared by a newer Vel ({unknown[-1]})",
            "Install that version, or restore a backup of the older database.",
        )
        return
    pending, rows = pending_migrations(), table_rows()
    yield from _migrations(pending)
    largest = [f"{name} {_count(rows[name])}" for name in list(rows)[:_SHOWN_TABLES] if rows[name]]
    yield Finding("large tables", Level.OK, ", ".join(largest) or "all are empty")
    yield from check_needs(pending, rows)


def _migrations(pending: list[PendingMigration]) -> Iterator[Finding]:
    if not pending:
        yield Finding("migrations", Level.OK, "none to apply")
        return
    names = ", ".join(one.name for one in pending[:_SHOWN_MIGRATIONS])
    more = len(pending) - _SHOWN_MIGRATIONS
    yield Finding(
        "migrations",
        Level.NOTE,
        f"{len(pending)} to apply: {names}" + (f" and {more} more" if more > 0 else ""),
        "Back up the database, then run: vel migrate",
    )
    for one in pending:
        if one.breaks:
            yield Finding(
                "side by side",
                Level.NOTE,
                f"{one.name} ends the work of old processes: {'; '.join(one.breaks)}",
                "Stop all processes of the old version before you run: vel migrate",
            )


def check_needs(pending: Iterable[PendingMigration], rows: Mapping[str, int]) -> Iterator[Finding]:
    """Check the free space and the time for the pending migrations."""
    tables = {table for one in pending for table in one.tables}
    any_table = any(one.runs_code for one in pending)
    changed = sum(rows.values()) if any_table else sum(rows.get(table, 0) for table in tables)
    size, reserve, left = database_bytes() or 0, DiskSettings.now().RESERVE_BYTES, room()
    # A migration may write a second copy of a table before it deletes the first one.
    needed = size if changed else 0
    is_short = left.free < needed + reserve
    yield Finding(
        "space",
        Level.NOTE if is_short else Level.OK,
        f"{_megabytes(left.free)} free on the disk of {left.place}; the migrations need at most "
        f"{_megabytes(needed)}, and {_megabytes(reserve)} are reserved",
        "Free some space first." if is_short else "",
    )
    if changed:
        where = "any table" if any_table else ", ".join(sorted(tables))
        yield Finding(
            "time",
            Level.OK,
            f"at most {changed / ROWS_PER_SECOND:,.0f} s for {changed:,} rows of {where}, roughly",
        )


def check_settings() -> Iterator[Finding]:
    """Check that this version starts with these settings, and knows all of them."""
    yield from system_checks(_concerns_settings, "none is unknown, invalid or deprecated")


def _concerns_settings(message: CheckMessage) -> bool:
    return message.level >= ERROR or message.id in SETTING_WARNINGS


def check_defaults(
    changes: Iterable[ChangedDefault], environ: Mapping[str, str], since: str
) -> Iterator[Finding]:
    """Check the settings whose defaults have changed and that the operator has not set."""
    found = [
        one
        for one in changes
        if one.variable not in environ and (not since or _parts(one.version) > _parts(since))
    ]
    for one in found:
        yield Finding(
            "defaults",
            Level.NOTE,
            f"{one.variable} was {one.old}, and is {one.new} since {one.version}",
            f"Set {one.variable} to choose a value.",
        )
    if not found:
        yield Finding("defaults", Level.OK, "no default of an unset setting has changed")


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _count(rows: int) -> str:
    return f"at least {rows:,} rows" if rows >= MOST_COUNTED else f"{rows:,} rows"


def _megabytes(size: int) -> str:
    return f"{-(-size // 1_000_000):,} MB"
