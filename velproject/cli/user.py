"""`vel user`: accounts for the pages."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import persist_option
from velproject.cli.prompting import interruptible


@click.group(short_help="Create accounts for the pages.")
def user() -> None:
    """Accounts for the pages and the API."""


@user.command("create")
@click.argument("username", metavar="NAME")
@persist_option
@click.option("--admin", is_flag=True, help="May do everything, in the admin too.")
@click.option("--approver", is_flag=True, help="May decide the approvals of all runs.")
@click.option("--email", default="")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
def create(
    username: str,
    persist: Path | None,
    admin: bool,
    approver: bool,
    email: str,
    password_stdin: bool,
) -> int:
    """Make an account, or give the account of that name a password."""
    if password_stdin:
        with interruptible():
            password = sys.stdin.readline().rstrip("\r\n")
    elif sys.stdin.isatty():
        with interruptible():
            password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        raise click.UsageError("Standard input is no terminal: use --password-stdin.")
    return perform(
        "actions.user:create",
        persist=persist,
        username=username,
        password=password,
        admin=admin,
        approver=approver,
        email=email,
    )
