"""`vel database`: the database that Vel itself uses."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from agents.doors.cli.boot import database as boot_database
from agents.doors.cli.errors import FAILED, CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option, persist_option
from agents.doors.cli.terminal import one_line, visible

with late_imports:
    from agents.features.operations.database_move.errors import MoveRefused
    from agents.features.operations.database_move.move import move_database
    from agents.features.operations.starting import missing_file, remove_mark


@click.group(short_help="Move the database of Vel itself.")
def database() -> None:
    """Manage the database of Vel itself (DATABASE_URL).

    `vel databases` lists other databases, which agents may read.
    """


@database.command(short_help="Move it to PostgreSQL, or back to SQLite.")
@click.option(
    "--to",
    "url",
    required=True,
    metavar="URL",
    help="An empty database: postgresql://user:password@host/name or sqlite:////absolute/path.",
)
@persist_option
@json_option
def move(url: str, persist: Path | None, as_json: bool) -> None:
    """Copy the database of Vel to another one, and compare all rows.

    Stop Vel first. The old database keeps its rows, and is marked: Vel does not start on it any
    more. If anything fails, both databases are as before. Afterwards, start Vel with the URL as
    DATABASE_URL.
    """
    with boot_database(persist, prepare=False):
        try:
            moved = move_database(url, lambda line: print(f"vel: {line}", file=sys.stderr))
        except MoveRefused as refused:
            raise CliError(str(refused), exit_code=FAILED) from refused
        for name in moved.uncopied:
            print(
                f"vel: not copied: the table {one_line(name)}, which belongs to no installed app",
                file=sys.stderr,
            )
        if moved.unmarked:
            print(
                f"vel: {moved.source} could not be marked as moved ({moved.unmarked}). Do not "
                "start Vel with it again: it would repeat work.",
                file=sys.stderr,
            )
        if as_json:
            print(json.dumps({**asdict(moved), "rows": moved.rows}))
            return
        print(f"Moved {moved.rows:,} rows of {len(moved.contents)} tables to {moved.target}.")
        print("Counts and hashes of all tables are equal.")
        print("Next: start Vel with the URL of --to as DATABASE_URL in its environment.")
        if not moved.unmarked:
            print(f"Vel does not start on {moved.source} any more. Its rows are unchanged.")
            print("To use that one again instead: vel database reopen")


@database.command(short_help="Use the old database again after a move.")
@persist_option
def reopen(persist: Path | None) -> None:
    """Let Vel start again on a database that was moved to another one.

    Stop Vel on the new database first. Otherwise, both installations start runs for the same
    schedules. The old database does not have what has happened in the new one.
    """
    with boot_database(persist, prepare=False):
        if path := missing_file():
            raise CliError(
                f"There is no database {path}. Check DATABASE_URL and VEL_DATA_DIR.",
                exit_code=FAILED,
            )
        place = remove_mark()
        if not place:
            raise CliError("This database was not moved, so Vel can use it.", exit_code=FAILED)
        print("Vel can start on this database again.")
        print(f"Do not start Vel any more on {visible(place)}: it would repeat work.")
