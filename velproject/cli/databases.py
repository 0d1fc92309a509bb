"""`vel databases`: which databases agents may read. No password is ever shown."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option, persist_option


@click.group(short_help="List databases that agents may read, and remove one's own.")
def databases() -> None:
    """Databases: those that the admin defines, and one's own of `vel TASK --database`."""


@databases.command("list")
@persist_option
@json_option
def list_databases(persist: Path | None, as_json: bool) -> int:
    """Show names, where they lead, and which agents have them."""
    return perform("commands.databases:list_databases", persist=persist, as_json=as_json)


@databases.command("remove")
@click.argument("name", metavar="NAME")
@persist_option
def remove(name: str, persist: Path | None) -> int:
    """Delete one's own database NAME, with its stored URL, at once."""
    return perform("commands.databases:remove", persist=persist, name=name)
