"""`vel approvals`: what waits for a person, and the answer."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option, persist_option

DECISIONS = ["approve", "edit", "reject", "respond"]


@click.group(short_help="List, show and decide what waits for a person.")
def approvals() -> None:
    """Requests for approval. REQUEST is an id or the beginning of one."""


@approvals.command("list")
@persist_option
@json_option
@click.option("--all", "decided_too", is_flag=True, help="Also those that are decided.")
def list_approvals(persist: Path | None, as_json: bool, decided_too: bool) -> int:
    """Show what waits, oldest first."""
    return perform(
        "approvals:list_approvals", persist=persist, as_json=as_json, decided_too=decided_too
    )


@approvals.command("show")
@click.argument("request_id", metavar="REQUEST")
@persist_option
@json_option
def show(request_id: str, persist: Path | None, as_json: bool) -> int:
    """Show the whole of what would run."""
    return perform("approvals:show", persist=persist, request_id=request_id, as_json=as_json)


@approvals.command("decide")
@click.argument("request_id", metavar="REQUEST")
@click.argument("decision", type=click.Choice(DECISIONS))
@persist_option
@click.option("--reason", default="", help="Told to the agent; with `respond` it is the result.")
@click.option("--input", "input_json", metavar="JSON", help="With `edit`: what runs instead.")
@click.option("--digest", help="Refuse unless the request still has this digest.")
def decide(
    request_id: str,
    decision: str,
    persist: Path | None,
    reason: str,
    input_json: str | None,
    digest: str | None,
) -> int:
    """Approve, edit, reject, or answer in the tool's place."""
    if (decision == "edit") != (input_json is not None):
        raise click.UsageError("`edit` goes with --input JSON, and --input goes with `edit` only.")
    return perform(
        "approvals:decide",
        persist=persist,
        request_id=request_id,
        decision=decision,
        reason=reason,
        input_json=input_json,
        digest=digest,
    )
