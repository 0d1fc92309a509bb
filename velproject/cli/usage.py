"""`vel usage`: what was used."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option, persist_option


@click.command(short_help="Show tokens and cost by day.")
@persist_option
@json_option
@click.option("--days", type=click.IntRange(1, 366), default=30, show_default=True)
def usage(persist: Path | None, as_json: bool, days: int) -> int:
    """Show what the models used in the runs that you may see, by day, agent, user and model."""
    return perform("commands.runs.usage:usage", persist=persist, as_json=as_json, days=days)
