"""`vel notifications`: who hears that something waits for a person."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option, persist_option

agent_option = click.option(
    "--agent", metavar="SLUG", help="Only of this agent's requests [default: of all agents]."
)


@click.group(short_help="Tell people by webhook or e-mail that something waits.")
def notifications() -> None:
    """Webhooks and addresses that hear of new requests. TARGET is an id or the beginning of one."""


@notifications.command("list")
@persist_option
@json_option
def list_targets(persist: Path | None, as_json: bool) -> int:
    """Show who hears of what, and what did not arrive."""
    return perform("commands.notifications:list_targets", persist=persist, as_json=as_json)


@notifications.command("add-webhook")
@click.argument("url", metavar="URL")
@agent_option
@persist_option
def add_webhook(url: str, agent: str | None, persist: Path | None) -> int:
    """POST new requests to URL, and print the secret that signs them, this once."""
    return perform("commands.notifications:add_webhook", persist=persist, url=url, agent=agent)


@notifications.command("add-email")
@click.argument("address", metavar="ADDRESS")
@agent_option
@persist_option
def add_email(address: str, agent: str | None, persist: Path | None) -> int:
    """Write to ADDRESS when something waits."""
    return perform(
        "commands.notifications:add_email", persist=persist, address=address, agent=agent
    )


@notifications.command("remove")
@click.argument("target_id", metavar="TARGET")
@persist_option
def remove(target_id: str, persist: Path | None) -> int:
    """Tell a target nothing more, and forget what it was told."""
    return perform("commands.notifications:remove", persist=persist, target_id=target_id)


@notifications.command("test")
@click.argument("target_id", metavar="TARGET")
@persist_option
def test(target_id: str, persist: Path | None) -> int:
    """Send a test message now. Ends with 1 if it does not arrive."""
    return perform("commands.notifications:send_test_message", persist=persist, target_id=target_id)
