"""`vel budgets`: what may be spent in a day or a month."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option, persist_option


@click.group(short_help="List budgets.")
def budgets() -> None:
    """What agents and users may spend. Budgets are made in the admin."""


@budgets.command("list")
@persist_option
@json_option
def list_budgets(persist: Path | None, as_json: bool) -> int:
    """Show your own budgets, or all if you may read them, and what is used of them now."""
    return perform("commands.budgets:list_budgets", persist=persist, as_json=as_json)
