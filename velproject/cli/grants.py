"""`vel grants`: what need not be asked about any more."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option, persist_option


@click.group(short_help="List and revoke standing permissions.")
def grants() -> None:
    """Calls that somebody said need not be asked about. GRANT is an id or the beginning of one."""


@grants.command("list")
@persist_option
@json_option
@click.option("--all", "ended_too", is_flag=True, help="Also those that have ended.")
def list_grants(persist: Path | None, as_json: bool, ended_too: bool) -> int:
    """Show those that you gave, that cover your runs, or that you may revoke; newest first."""
    return perform(
        "commands.approvals.grants:list_grants",
        persist=persist,
        as_json=as_json,
        ended_too=ended_too,
    )


@grants.command("revoke")
@click.argument("grant_id", metavar="GRANT")
@persist_option
def revoke(grant_id: str, persist: Path | None) -> int:
    """End one at once."""
    return perform("commands.approvals.grants:revoke", persist=persist, grant_id=grant_id)
