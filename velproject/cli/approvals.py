"""`vel approvals`: what waits for a person, and the answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option, persist_option

DECISIONS = ["approve", "edit", "reject", "respond"]
STATUSES = ["pending", "decided", "expired", "cancelled", "superseded"]
F = TypeVar("F", bound=Callable[..., Any])

_FILTERS = [
    click.option("--agent", default="", metavar="SLUG", help="Only of this agent's runs."),
    click.option("--tool", default="", help="Only of this tool."),
    click.option("--kind", default="", type=click.Choice(["", "tool", "memory", "budget"])),
    click.option("--run", default="", help="Only of the run whose id begins so."),
    click.option("--expiring", is_flag=True, help="Only those that expire, the next one first."),
]
_digest = click.option("--digest", help="Refuse unless the request still has this digest.")
_yes = click.option("--yes", is_flag=True, help="Do not show it and ask again at a terminal.")
_input = click.option("--input", "input_json", metavar="JSON", help="What runs instead, whole.")
_requests = click.argument("request_ids", metavar="REQUEST…", nargs=-1, required=True)


def _filters(command: F) -> F:
    return reduce(lambda inner, option: option(inner), reversed(_FILTERS), command)


@click.group(short_help="List, show and decide what waits for a person.")
def approvals() -> None:
    """Requests for approval. REQUEST is an id or the beginning of one."""


@approvals.command("list")
@persist_option
@json_option
@_filters
@click.option("--status", type=click.Choice(STATUSES), help="Instead of those that are pending.")
@click.option("--all", "decided_too", is_flag=True, help="Also those that are decided.")
def list_approvals(
    persist: Path | None, as_json: bool, status: str | None, decided_too: bool, **wanted: Any
) -> int:
    """Show what waits, oldest first."""
    wanted["status"] = status or ("" if decided_too else "pending")
    return perform(
        "commands.approvals.requests:list_approvals",
        persist=persist,
        as_json=as_json,
        wanted=wanted,
    )


@approvals.command("watch")
@persist_option
@json_option
@_filters
def watch(persist: Path | None, as_json: bool, **wanted: Any) -> int:
    """Show what waits as it comes and goes, until Ctrl-C."""
    return perform("actions.watch_approvals:watch", persist=persist, as_json=as_json, wanted=wanted)


@approvals.command("show")
@click.argument("request_id", metavar="REQUEST")
@persist_option
@json_option
def show(request_id: str, persist: Path | None, as_json: bool) -> int:
    """Show the whole of what would run, or be remembered."""
    return perform(
        "commands.approvals.requests:show", persist=persist, request_id=request_id, as_json=as_json
    )


@approvals.command("approve")
@_requests
@persist_option
@_digest
@_yes
@click.option(
    "--always",
    type=click.Choice(["input", "command", "path", "tool"]),
    help="Do not ask again about this input, commands or paths that fit, or the tool.",
)
@click.option("--pattern", default="", help="With --always command (RE2) or path (with *).")
@click.option("--days", type=int, help="With --always: for so long (7).")
@click.option("--uses", type=int, help="With --always: so often (100).")
@click.option("--everybody", is_flag=True, help="With --always: in everybody's runs.")
def approve(
    always: str | None,
    pattern: str,
    days: int | None,
    uses: int | None,
    everybody: bool,
    **arguments: Any,
) -> int:
    """Approve requests as they are shown."""
    terms: dict[str, Any] | None = None
    if always is not None:
        terms = {"match": always, "pattern": pattern, "for_everybody": everybody}
        terms |= {"days": days} if days is not None else {}
        terms |= {"max_uses": uses} if uses is not None else {}
    elif pattern or everybody or days is not None or uses is not None:
        raise click.UsageError("--pattern, --days, --uses and --everybody go with --always.")
    return _decide("approve", always=terms, **arguments)


@approvals.command("reject")
@_requests
@persist_option
@_digest
@click.option("--reason", default="", help="Told to the agents.")
def reject(**arguments: Any) -> int:
    """Reject requests; their runs go on without the calls."""
    return _decide("reject", **arguments)


@approvals.command("edit")
@click.argument("request_id", metavar="REQUEST")
@persist_option
@_digest
@_yes
@_input
@click.option(
    "--content-file",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="For an edit of the memory: the whole file that is saved instead.",
)
@click.option("--editor", "in_editor", is_flag=True, help="Edit it in $VISUAL or $EDITOR.")
def edit(
    persist: Path | None,
    input_json: str | None,
    content_file: Path | None,
    in_editor: bool,
    **arguments: Any,
) -> int:
    """Approve a request with changes."""
    if sum([input_json is not None, content_file is not None, in_editor]) != 1:
        raise click.UsageError("Give one of --input JSON, --content-file FILE and --editor.")
    return perform(
        "commands.approvals.deciding:edit",
        persist=persist,
        input_json=input_json,
        content_file=content_file,
        in_editor=in_editor,
        **arguments,
    )


@approvals.command("decide")
@click.argument("request_id", metavar="REQUEST")
@click.argument("decision", type=click.Choice(DECISIONS))
@persist_option
@click.option("--reason", default="", help="Told to the agent; with `respond` it is the result.")
@_input
@_digest
@_yes
def decide(request_id: str, decision: str, input_json: str | None, **arguments: Any) -> int:
    """Approve, edit, reject, or answer in the tool's place."""
    if (decision == "edit") != (input_json is not None):
        raise click.UsageError("`edit` goes with --input JSON, and --input goes with `edit` only.")
    return _decide(decision, request_ids=[request_id], input_json=input_json, **arguments)


def _decide(
    decision: str, *, request_ids: list[str], digest: str | None, persist: Path | None, **more: Any
) -> int:
    if digest is not None and len(request_ids) > 1:
        raise click.UsageError("--digest goes with one request.")
    return perform(
        "commands.approvals.deciding:decide",
        persist=persist,
        request_ids=list(request_ids),
        decision=decision,
        digest=digest,
        **more,
    )
