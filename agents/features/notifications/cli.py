"""`vel notifications`: targets of messages about pending requests."""

from __future__ import annotations

import json
import sys

import click

from agents.doors.cli.boot import again, with_database
from agents.doors.cli.errors import FAILED, CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option
from agents.doors.cli.terminal import one_line

with late_imports:
    from django.db.models import Count, Q
    from rich.text import Text

    from agents.doors.cli.console import print_table
    from agents.doors.cli.find import by_id
    from agents.features.notifications.actions import remove_target, save_target
    from agents.features.notifications.delivery import send_test
    from agents.features.notifications.models import (
        NotificationStatus,
        NotificationTarget,
        TargetKind,
    )
    from agents.features.notifications.webhook import DeliveryFailed
    from agents.models import Agent

agent_option = click.option(
    "--agent", metavar="SLUG", help="Only requests of this agent. Default: of all agents."
)


@click.group(short_help="Notify people of pending requests by webhook or e-mail.")
def notifications() -> None:
    """Manage webhooks and addresses for notifications. TARGET is an ID or the start of an ID."""


@notifications.command("list")
@with_database
@json_option
def list_targets(as_json: bool) -> None:
    """List targets, with the numbers of waiting and failed messages."""
    rows = list(
        NotificationTarget.objects.select_related("agent").annotate(
            waiting=Count("notifications", Q(notifications__status=NotificationStatus.PENDING)),
            lost=Count("notifications", Q(notifications__status=NotificationStatus.GIVEN_UP)),
        )
    )
    if as_json:
        for row in rows:
            print(
                json.dumps(
                    {
                        "id": row.id,
                        "kind": row.kind,
                        "address": row.address,
                        "agent": row.agent.slug if row.agent else None,
                        "active": row.is_active,
                        "waiting": row.waiting,
                        "given_up": row.lost,
                    }
                )
            )
        return
    if not rows:
        print(
            f"There are no notification targets yet: {again('notifications add-webhook URL')} or "
            f"{again('notifications add-email ADDRESS')}.",
            file=sys.stderr,
        )
        return
    print_table(
        ("TARGET", "KIND", "ADDRESS", "AGENT", "WAITING", "GIVEN UP"),
        (
            (
                row.id,
                row.kind if row.is_active else f"{row.kind}, off",
                Text(one_line(row.address)),
                Text(row.agent.slug if row.agent else "all"),
                str(row.waiting),
                str(row.lost),
            )
            for row in rows
        ),
    )


@notifications.command("add-webhook")
@click.argument("url", metavar="URL")
@agent_option
@with_database
def add_webhook(url: str, agent: str | None) -> None:
    """POST new requests to URL, and print the secret that signs them.

    The secret is not shown again.
    """
    target = NotificationTarget(kind=TargetKind.WEBHOOK, address=url, agent=_agent(agent))
    secret = save_target(target)
    print(f"Target {target.id}. Its secret, shown this once:", file=sys.stderr)
    print(secret)  # alone on standard output, so that a script can take it


@notifications.command("add-email")
@click.argument("address", metavar="ADDRESS")
@agent_option
@with_database
def add_email(address: str, agent: str | None) -> None:
    """Send messages about pending requests to ADDRESS."""
    target = NotificationTarget(kind=TargetKind.EMAIL, address=address, agent=_agent(agent))
    save_target(target)
    print(f"Target {target.id}: {one_line(address)} hears of new requests.")


@notifications.command("remove")
@click.argument("target_id", metavar="TARGET")
@with_database
def remove(target_id: str) -> None:
    """Remove a target and the record of its messages."""
    target = by_id(NotificationTarget.objects.all(), target_id, "target")
    remove_target(target.pk)
    print(f"{one_line(target.address)} receives no more messages.")


@notifications.command("test")
@click.argument("target_id", metavar="TARGET")
@with_database
def test(target_id: str) -> None:
    """Send a test message now. Exits with 1 if it does not arrive."""
    target = by_id(NotificationTarget.objects.all(), target_id, "target")
    try:
        send_test(target)
    except DeliveryFailed as failed:
        raise CliError(f"The test message did not arrive: {failed}.", exit_code=FAILED) from None
    print("The test message has arrived.")


def _agent(slug: str | None) -> Agent | None:
    if slug is None:
        return None
    agent = Agent.objects.filter(slug=slug).first()
    if agent is None:
        raise CliError(f"There is no agent {one_line(slug)!r}.")
    return agent


COMMANDS = (notifications,)
