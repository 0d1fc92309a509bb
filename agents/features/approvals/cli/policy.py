"""`vel policy`: an agent's policy, and the effect that another policy would have had."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import click

from agents.doors.cli.boot import with_database
from agents.doors.cli.errors import CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option
from agents.doors.cli.terminal import one_line

with late_imports:
    from rich.text import Text

    from agents.doors.cli.console import print_table
    from agents.doors.cli.find import by_id
    from agents.kernel.proposals import proposal_kinds
    from agents.middleware.rehearsal import Rehearsal, rehearse, with_policy
    from agents.models import Agent
    from agents.services.agent_definitions.actions import build_spec
    from agents.spec import AgentSpec, CallCondition, InterruptRule

POLICY_FIELDS = {
    "approval_rules",
    "interrupt_on",
    "approvals_needed",
    "self_approval",
    "approval_expiry",
}


@click.group(short_help="Show an agent's policy, and try another on its past calls.")
def policy() -> None:
    """Show and rehearse the policy for an agent's calls. AGENT is a slug or the start of an ID."""


@policy.command("show")
@click.argument("agent", metavar="AGENT")
@with_database
@json_option
def show(agent: str, as_json: bool) -> None:
    """Show the rules in their order."""
    spec = build_spec(agent_named(agent))
    if as_json:
        print(json.dumps(spec.model_dump(mode="json", include=POLICY_FIELDS)))
        return
    rules = [
        (
            f"rule {number}",
            Text(one_line(rule.tool, 40)),
            rule.action,
            Text(one_line("; ".join((*_conditions(rule.when), *_note(rule.reason))), 160)),
        )
        for number, rule in enumerate(spec.approval_rules, start=1)
    ]
    asked = [
        ("interrupt_on", Text(one_line(tool, 40)), _asks(value), _decisions(value))
        for tool, value in spec.interrupt_on.items()
    ]
    rest = [("effect", "*", "ask", "calls with the effect external; others are allowed")]
    proposals = [
        (kind.name, kind.rule, "ask", "always, unless a rule denies it")
        for kind in proposal_kinds().values()
    ]
    print_table(
        ("BY", "TOOL", "ACTION", "WHEN"),
        [*rules, *proposals, *asked, *rest],
    )
    print(_terms(spec), file=sys.stderr)


@policy.command("rehearse")
@click.argument("agent", metavar="AGENT")
@with_database
@json_option
@click.option(
    "--rules",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help='JSON: a list of rules, or {"approval_rules": […], "interrupt_on": {…}}.',
)
@click.option(
    "--days",
    type=click.IntRange(1, 365),
    default=7,
    show_default=True,
    help="Days of past calls to rehearse.",
)
def rehearse_policy(agent: str, as_json: bool, rules: Path, days: int) -> None:
    """Show what another policy would have allowed, asked about and denied. Changes nothing."""
    row = agent_named(agent)
    found = rehearse(row, with_policy(row, read_policy(rules.absolute())), days=days)
    if as_json:
        fields = dataclasses.asdict(found)
        del fields["latest"]  # for pages
        print(json.dumps(fields))
        return
    print_table(
        ("TOOL", "ALLOWED", "ASKED", "DENIED", "CHANGED"),
        (
            (
                Text(one_line(tool, 40)),
                *(
                    f"{counts.before[action]} → {counts.after[action]}"
                    for action in ("allow", "ask", "deny")
                ),
                str(counts.changed),
            )
            for tool, counts in found.tools.items()
        ),
    )
    if found.examples:
        print()
        print_table(
            ("RUN", "TOOL", "WAS", "BEFORE", "AFTER", "BY", "INPUT"),
            (
                (
                    example.run_id,
                    Text(one_line(example.tool, 30)),
                    example.status,
                    example.before,
                    example.after,
                    example.source,
                    Text(one_line(example.input, 160)),
                )
                for example in found.examples
            ),
        )
    print(_summary(found), file=sys.stderr)


def agent_named(name: str) -> Agent:
    return Agent.objects.filter(slug=name).first() or by_id(Agent.objects.all(), name, "agent")


def read_policy(path: Path) -> dict[str, Any]:
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CliError(f"{path} is not JSON: {error}.") from None
    policy = {"approval_rules": given} if isinstance(given, list) else given
    known = {"approval_rules", "interrupt_on"}
    if not isinstance(policy, dict) or not policy or set(policy) - known:
        raise CliError(
            f"{path}: give a list of rules, or an object with {', '.join(sorted(known))}."
        )
    return policy


def _summary(found: Rehearsal) -> str:
    text = f"{found.calls:,} calls of {found.days} days, {found.changed:,} would change."
    if found.cut:
        text += " There were more: these are the newest."
    if found.changed > len(found.examples):
        text += f" {len(found.examples)} of them are shown."
    return text


def _conditions(when: CallCondition) -> list[str]:
    return [f"{name} {value}" for name, value in when.model_dump(exclude_none=True).items()]


def _note(reason: str) -> list[str]:
    return [f"“{reason}”"] if reason else []


def _asks(value: bool | InterruptRule) -> str:
    return "allow" if value is False else "ask"


def _decisions(value: bool | InterruptRule) -> str:
    return ", ".join(value.allowed_decisions) if isinstance(value, InterruptRule) else ""


def _terms(spec: AgentSpec) -> str:
    people = "two people approve" if spec.approvals_needed == 2 else "one person approves"
    own = "also of own runs" if spec.self_approval else "never of own runs"
    waits = f"for {spec.approval_expiry:,} s" if spec.approval_expiry else "without an end"
    return f"Where it asks, {people}, {own}; a request waits {waits}."
