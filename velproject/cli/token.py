"""`vel token`: tokens for the API."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option, persist_option

SCOPES = ["read", "run", "approve", "manage", "mcp"]


@click.group(short_help="Create, list and revoke API tokens.")
def token() -> None:
    """Tokens for the API."""


@token.command("create")
@click.argument("username", metavar="USER")
@persist_option
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    default=("read", "run"),
    show_default=True,
    help="What it may do; repeat for several.",
)
@click.option("--name", default="", help="What it is for.")
@click.option("--days", type=click.IntRange(1, 3650), default=90, show_default=True)
def create(
    username: str, persist: Path | None, scopes: tuple[str, ...], name: str, days: int
) -> int:
    """Make a token for USER and print it, this once."""
    return perform(
        "commands.accounts:create",
        persist=persist,
        username=username,
        scopes=scopes,
        name=name,
        days=days,
    )


@token.command("list")
@click.argument("username", metavar="USER", required=False)
@persist_option
@json_option
def list_tokens(username: str | None, persist: Path | None, as_json: bool) -> int:
    """Show tokens by their first characters."""
    return perform(
        "commands.accounts:list_tokens", persist=persist, username=username, as_json=as_json
    )


@token.command("revoke")
@click.argument("prefix")
@persist_option
def revoke(prefix: str, persist: Path | None) -> int:
    """End the token that begins with PREFIX."""
    return perform("commands.accounts:revoke", persist=persist, prefix=prefix)
