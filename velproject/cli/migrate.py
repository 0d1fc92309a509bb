"""`vel migrate`: bring the database's tables up to date."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import persist_option


@click.command(short_help="Bring the database's tables up to date.")
@persist_option
def migrate(persist: Path | None) -> int:
    """Bring the database's tables up to date. Every other command does so too."""
    return perform("commands.machines.migrate:migrate", persist=persist, prepare=False)
