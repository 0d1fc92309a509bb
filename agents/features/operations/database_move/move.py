"""The order of a move: find others, lock, check every value, copy, compare, commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

from agents.doors.database_schema import missing_migrations, unknown_migrations
from agents.features.operations.database_move.errors import MoveRefused
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
from agents.features.removal import leftovers
from agents.settings import DataSettings, MachineSettings
from agents.settings.data import database

_SIDES: dict[str, type[Side]] = {
    "django.db.backends.sqlite3": SqliteSide,
    "django.db.backends.postgresql": PostgresqlSide,
}
SHOWN = 10
"""The limit of bad values that a refusal names."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A finished move. `uncopied` are tables of the source that belong to no installed app."""

    source: str
    target: str
    contents: dict[str, Content]
    uncopied: list[str]

    @property
    def rows(self) -> int:
        return sum(content.rows for content in self.contents.values())


def move_database(url: str, say: Callable[[str], None]) -> Moved:
    """Copy the default database to the one of `url`, and compare counts and hashes.

    Args:
        url: The URL of an empty database.
        say: Called with a line for each step.

    Raises:
        MoveRefused: A reason for which nothing was changed in either database.
        ImproperlyConfigured: The URL is invalid.
    """
    settings = database(url, DataSettings.now().DATA_DIR, "--to")
    usual = connections[DEFAULT_DB_ALIAS]
    kind = _SIDES.get(usual.settings_dict["ENGINE"])
    if kind is None:
        raise MoveRefused("Only databases in SQLite or PostgreSQL can be moved.")
    if kind is SqliteSide and not Path(usual.settings_dict["NAME"]).is_file():
        # A connection would create it.
        raise MoveRefused(
            f"There is no database {usual.settings_dict['NAME']}. Check DATABASE_URL and "
            "VEL_DATA_DIR."
        )
    _refuse_other_schema()
    if settings["ENGINE"].endswith("sqlite3") and MachineSettings.now().HOST:
        raise MoveRefused("Several hosts (VEL_HOST) need PostgreSQL. Name a PostgreSQL database.")
    refuse_active(DEFAULT_DB_ALIAS)
    own = {**usual.settings_dict}
    usual.close()
    with (
        closing(kind("move_source", own)) as source,
        closing(_SIDES[settings["ENGINE"]]("move_target", settings)) as target,
        source.locked(),
    ):
        refuse_active(source.alias)
        found = tables()
        expected = source.migrations()
        uncopied = _other_tables(source, found)
        target.examine(found, expected, source.size())
        say(f"checking {source.name}")
        before = _check(source, target, found)
        with target.writing(found, expected):
            say(f"copying {sum(each.rows for each in before.values()):,} rows to {target.name}")
            for table in found:
                target.insert(table, source.rows(table))
            for table in found:
                if (column := table.counter) is not None:
                    last = max(source.counter(table), target.max_of(table, column))
                    target.set_counter(table, last)
            target.check_references()
            say("comparing both databases")
            _compare(target, before, found)
        return Moved(source.name, target.name, before, uncopied)


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
        hasher = Hasher(table)
        for row in _readable(table, target.rows(table)):
            hasher.add(row)
        there, here = hasher.content(), before[table.name]
        if there != here:
            kind = "rows" if there.rows != here.rows else "values"
            raise MoveRefused(
                f"{table.name} has other {kind} after the copy: {here.rows:,} rows with the hash "
                f"{here.digest[:12]}, and {there.rows:,} with {there.digest[:12]}. The target was "
                "left as it was. Please report this."
            )


def _readable(table: Table, rows: Iterator[Row]) -> Iterator[Row]:
    for row in rows:
        wrong: list[Any] = [value for value in row if isinstance(value, Exception)]
        if wrong:
            raise MoveRefused(f"{table.row_name(row)} cannot be read after the copy: {wrong[0]}.")
        yield row
