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
from agents.doors.cli.terminal import one_line

with late_imports:
    from agents.features.operations.database_move.errors import MoveRefused
    from agents.features.operations.database_move.move import move_database


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

    Stop Vel first. The old database stays as it is. If anything fails, both databases are as
    before. Afterwards, start Vel with the URL as DATABASE_URL.
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
        if as_json:
            print(json.dumps({**asdict(moved), "rows": moved.rows}))
            return
        print(f"Moved {moved.rows:,} rows of {len(moved.contents)} tables to {moved.target}.")
        print("Counts and hashes of all tables are equal.")
        print("Next: start Vel with the URL of --to as DATABASE_URL in its environment.")
        print(f"Unchanged: {moved.source}. Do not start Vel with it again: it would repeat work.")
