"""`vel policy`: what an agent asks about, and what another policy would have."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option, persist_option


@click.group(short_help="Show an agent's policy, and try another on its past calls.")
def policy() -> None:
    """What happens to an agent's calls before they run. AGENT is a slug."""


@policy.command("show")
@click.argument("agent", metavar="AGENT")
@persist_option
@json_option
def show(agent: str, persist: Path | None, as_json: bool) -> int:
    """Show the rules in their order."""
    return perform("commands.approvals.policy:show", persist=persist, slug=agent, as_json=as_json)


@policy.command("rehearse")
@click.argument("agent", metavar="AGENT")
@persist_option
@json_option
@click.option(
    "--rules",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help='JSON: a list of rules, or {"approval_rules": […], "interrupt_on": {…}}.',
)
@click.option("--days", type=click.IntRange(1, 365), default=7, show_default=True)
def rehearse(agent: str, persist: Path | None, as_json: bool, rules: Path, days: int) -> int:
    """Show what another policy would have allowed, asked and denied. Changes nothing."""
    return perform(
        "commands.approvals.policy:rehearse_policy",
        persist=persist,
        slug=agent,
        as_json=as_json,
        rules=rules.absolute(),
        days=days,
    )
