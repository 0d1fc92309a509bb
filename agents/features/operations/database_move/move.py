"""The order of a move: find others, lock, check every value, copy, compare, commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections

from agents.doors.cli.terminal import one_line
from agents.doors.database_schema import missing_migrations, unknown_migrations
from agents.features.operations.database_move.errors import (
    CommitUnknown,
    MoveRefused,
    NotEmpty,
)
from agents.features.operations.database_move.postgresql import PostgresqlSide
from agents.features.operations.database_move.quiet import refuse_active
from agents.features.operations.database_move.sides import Row, Side
from agents.features.operations.database_move.sqlite import SqliteSide
from agents.features.operations.database_move.tables import (
    Content,
    Hasher,
    Table,
    check_row,
    tables,
)
from agents.features.operations.starting import missing_file, refusal
from agents.features.removal import leftovers
from agents.settings import DataSettings, MachineSettings
from agents.settings.data import database

_SIDES: dict[str, type[Side]] = {
    "django.db.backends.sqlite3": SqliteSide,
    "django.db.backends.postgresql": PostgresqlSide,
}
_DISK_FULL = "53100"
SHOWN = 10
"""The limit of bad values that a refusal names."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A finished move.

    `uncopied` are tables of the source that belong to no installed app. `unmarked` is the reason
    for which the source has no mark, empty if it has one.
    """

    source: str
    target: str
    contents: dict[str, Content]
    uncopied: list[str]
    unmarked: str = ""

    @property
    def rows(self) -> int:
        return sum(content.rows for content in self.contents.values())


def move_database(url: str, say: Callable[[str], None]) -> Moved:
    """Copy the default database to the one of `url`, and compare counts and hashes.

    Args:
        url: The URL of an empty database.
        say: Called with a line for each step.

    Raises:
        MoveRefused: The old database is as before. The new one is, too, unless the message says
            that its state is unknown.
        ImproperlyConfigured: The URL is invalid.
    """
    settings = database(url, DataSettings.now().DATA_DIR, "--to")
    usual = connections[DEFAULT_DB_ALIAS]
    kind = _SIDES.get(usual.settings_dict["ENGINE"])
    if kind is None:
        raise MoveRefused("Only databases in SQLite or PostgreSQL can be moved.")
    if path := missing_file():
        raise MoveRefused(f"There is no database {path}. Check DATABASE_URL and VEL_DATA_DIR.")
    if reason := refusal():
        raise MoveRefused(reason)
    _refuse_other_schema()
    if settings["ENGINE"].endswith("sqlite3") and MachineSettings.now().HOST:
        raise MoveRefused("Several hosts (VEL_HOST) need PostgreSQL. Name a PostgreSQL database.")
    refuse_active(DEFAULT_DB_ALIAS)
    own = {**usual.settings_dict}
    usual.close()
    moved: Moved | None = None
    try:
        with (
            closing(kind("move_source", own)) as source,
            closing(_SIDES[settings["ENGINE"]]("move_target", settings)) as target,
            source.locked(),
        ):
            moved = _move(source, target, say)
            source.mark(target.name)
    except DatabaseError as error:
        if moved is None:
            raise
        return replace(moved, unmarked=one_line(str(error), 200))
    return moved


def _move(source: Side, target: Side, say: Callable[[str], None]) -> Moved:
    """Copy the locked source. Everything is committed at the end."""
    refuse_active(source.alias)
    if source.identity() == target.identity():
        raise MoveRefused(f"{target.name} is the database to move. Name another one.")
    found = tables()
    expected = source.migrations()
    uncopied = _other_tables(source, found)
    full: NotEmpty | None = None
    try:
        target.examine(found, expected, source.size())
    except NotEmpty as error:
        full = error
        # A copy has as many rows. Counting them is faster than reading all of them.
        if any(source.count(table.name) != target.count(table.name) for table in found):
            raise
    say(f"checking {source.name}")
    before = _check(source, target, found)
    if full is not None:
        _complete(target, before, found, full)
        say(f"{target.name} has the whole copy of an earlier move, which is completed now")
        return Moved(source.name, target.name, before, uncopied)
    try:
        with target.writing(found, expected):
            say(f"copying {sum(each.rows for each in before.values()):,} rows to {target.name}")
            _copy(source, target, found)
            say("comparing both databases")
            _compare(target, before, found)
    except CommitUnknown as error:
        _examine_commit(target, before, say, error)
    except (DatabaseError, psycopg.Error, OSError) as error:
        raise MoveRefused(
            f"The copy to {target.name} failed: {one_line(str(error), 200).rstrip('.')}."
            f"{_advice(error)} Both databases are as before."
        ) from error
    return Moved(source.name, target.name, before, uncopied)


def _complete(
    target: Side, before: dict[str, Content], found: Sequence[Table], full: NotEmpty
) -> None:
    """Check that the rows of the target are the copy of a move that was killed before its end.

    Raises:
        NotEmpty: They are others.
        MoveRefused: Another process uses the target.
    """
    with target.completing():
        for table in found:
            if _content(target, table) != before[table.name]:
                raise full


def _copy(source: Side, target: Side, found: Sequence[Table]) -> None:
    for table in found:
        target.insert(table, source.rows(table))
    for table in found:
        if (column := table.counter) is not None:
            last = max(source.counter(table), target.max_of(table, column))
            target.set_counter(table, last)
    target.check_references()


def _examine_commit(
    target: Side, expected: dict[str, Content], say: Callable[[str], None], error: CommitUnknown
) -> None:
    """Return if the target has the copy. Raise `MoveRefused` if it has not, or if nobody knows."""
    lost = f"The connection to {target.name} was lost at the end of the move"
    has_committed = target.has_committed(expected)
    if has_committed:
        say(f"{lost}, after the copy was stored: the copy is complete")
        return
    if has_committed is False:
        raise MoveRefused(
            f"{lost}, before the copy was stored. Both databases are as before. Try again."
        ) from error
    raise MoveRefused(
        f"{lost}, and it cannot be reached now. It has either the whole copy or nothing, and the "
        "old database is as before. Do not start Vel on either. When the server can be reached "
        "again, repeat the command: it completes the move."
    ) from error


def _advice(error: Exception) -> str:
    """Return what to do about a full disk."""
    cause = error.__cause__ or error
    code = getattr(cause, "sqlite_errorcode", None)
    is_full = getattr(cause, "sqlstate", None) == _DISK_FULL or (
        code is not None and code & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    )
    return " Check that the disk of the target has room." if is_full else ""


def _refuse_other_schema() -> None:
    """Raise `MoveRefused` unless the source has exactly the migrations of this version."""
    if missing := missing_migrations():
        raise MoveRefused(
            f"The database lacks {len(missing)} migrations, for example {missing[0]}. Run "
            "`vel migrate` first."
        )
    if unknown := unknown_migrations():
        raise MoveRefused(
            f"A newer version of Vel has changed the database ({unknown[0]}). Use that version."
        )


def _other_tables(source: Side, found: Sequence[Table]) -> list[str]:
    """Return tables of no installed app. Raises `MoveRefused` for rows of a disabled feature."""
    missing = [table.name for table in found if table.name not in source.table_names()]
    if missing:
        raise MoveRefused(f"The database lacks the table {missing[0]}. Run `vel doctor`.")
    ours = {table.name for table in found} | {"django_migrations"}
    others = sorted(source.table_names() - ours)
    for label in leftovers(source.connection):
        kept = [name for name in others if name.startswith(f"{label}_") and source.has_rows(name)]
        if kept:
            raise MoveRefused(
                f"The feature {label} is not installed, and {kept[0]} has rows, which would be "
                f"lost. Install the feature, or run: vel features remove {label}"
            )
    return others


def _check(source: Side, target: Side, found: Sequence[Table]) -> dict[str, Content]:
    """Read each row, and return the contents. Raises `MoveRefused` for values that do not fit."""
    contents = {}
    problems: list[str] = []
    for table in found:
        limits = [column.limits(target.connection) for column in table.columns]
        hasher = Hasher(table)
        for row in source.rows(table):
            wrong = list(check_row(table, row, limits))
            problems += wrong
            if not problems:
                hasher.add(row)
        contents[table.name] = hasher.content()
    if problems:
        more = f"; and {len(problems) - SHOWN:,} more" if len(problems) > SHOWN else ""
        raise MoveRefused(
            f"{target.title} cannot store {len(problems):,} values: "
            f"{'; '.join(problems[:SHOWN])}{more}. Change or delete "
            "these rows. Nothing was written."
        )
    return contents


def _compare(target: Side, before: dict[str, Content], found: Sequence[Table]) -> None:
    """Read the copy, and raise `MoveRefused` if a table differs from the source."""
    for table in found:
        there, here = _content(target, table), before[table.name]
        if there != here:
            kind = "rows" if there.rows != here.rows else "values"
            raise MoveRefused(
                f"{table.name} has other {kind} after the copy: {here.rows:,} rows with the hash "
                f"{here.digest[:12]}, and {there.rows:,} with {there.digest[:12]}. The target was "
                "left as it was. Please report this."
            )


def _content(target: Side, table: Table) -> Content:
    hasher = Hasher(table)
    for row in _readable(table, target.rows(table)):
        hasher.add(row)
    return hasher.content()


def _readable(table: Table, rows: Iterator[Row]) -> Iterator[Row]:
    for row in rows:
        wrong: list[Any] = [value for value in row if isinstance(value, Exception)]
        if wrong:
            raise MoveRefused(f"{table.row_name(row)} cannot be read after the copy: {wrong[0]}.")
        yield row
