"""`vel secrets`: care for what is stored encrypted."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import persist_option


@click.group(short_help="Encrypt stored passwords with a new key.")
def secrets() -> None:
    """Stored secrets: the URLs of databases."""


@secrets.command("rotate")
@persist_option
def rotate(persist: Path | None) -> int:
    """Encrypt all stored secrets with the first key of VEL_SECRET_KEYS.

    Put the new key in front of the old one, start all processes of Vel anew, run this, and then
    take the old key out.
    """
    return perform("actions.secrets:rotate", persist=persist)
