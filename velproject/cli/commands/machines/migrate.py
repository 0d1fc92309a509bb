"""`vel migrate`: update the database's tables."""

from __future__ import annotations

from pathlib import Path

import click

from agents.doors.cli.boot import database
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import persist_option

with late_imports:
    from agents.doors.database_schema import ensure_schema


@click.command(short_help="Update the database tables.")
@persist_option
def migrate(persist: Path | None) -> None:
    """Update the database tables. Most other commands do this automatically.

    `vel backup`, `vel restore`, `vel upgrade` and `vel database` do not.
    """
    with database(persist, prepare=False):
        done = ensure_schema()
        print("The database was updated." if done else "The database is up to date.")
