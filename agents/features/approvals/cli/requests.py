"""`vel approvals`: requests for approval. The commands that decide are in `deciding`."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any, NoReturn, TypeVar

import click

from agents.doors.cli.boot import with_database
from agents.doors.cli.errors import OK, CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option
from agents.doors.cli.terminal import one_line

with late_imports:
    from django.db.models import QuerySet
    from django.utils import timezone
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    from agents.doors.cli.console import new_console, print_table, table_of
    from agents.doors.cli.find import by_id
    from agents.doors.cli.local_user import local_user
    from agents.doors.cli.wording import short_input
    from agents.features.approvals.cli.ask import show_refused
    from agents.features.approvals.cli.shown_request import (
        expiry,
        length,
        show_outcome,
        show_request,
    )
    from agents.features.approvals.pending_responses import pending_responses
    from agents.kernel.proposals import proposal_kind, request_relations
    from agents.models import ApprovalRequest
    from agents.models.approval import request_kinds
    from agents.review import as_json as reading_as_json
    from agents.selectors.visible import approvals_for
    from agents.services.approvals.request_review import review_of_request
    from agents.states import ApprovalStatus

STATUSES = ["pending", "decided", "expired", "cancelled", "superseded"]
PENDING = "pending"
POLL_SECONDS = 0.5
F = TypeVar("F", bound=Callable[..., Any])

_FILTERS = [
    click.option("--agent", default="", metavar="SLUG", help="Only requests of this agent's runs."),
    click.option("--tool", default="", help="Only requests for this tool."),
    click.option(
        "--kind",
        default="",
        metavar="NAME",
        help="Only requests of this kind: tool, memory, budget, or a kind of another feature.",
    ),
    click.option("--run", default="", help="Only requests of this run (an ID, or its start)."),
    click.option("--expiring", is_flag=True, help="Only requests that expire, the next one first."),
]
_HEADS = ("REQUEST", "AGENT", "RUN", "STATUS", "AGE", "EXPIRES", "TOOL", "INPUT")
_ONLY_WIDE = ("RUN", "EXPIRES")
"""Columns that only wide terminals show. `vel approvals show` has their values."""
_WIDE = 120
"""The smallest width of a wide terminal, in columns."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which requests to list. Empty texts match all; `status` is one status, or empty for all.

    `agent` is a slug, `tool` and `kind` are whole names, `run` is the beginning of an id. With
    `expiring`: only requests that expire, the next one first.
    """

    agent: str = ""
    tool: str = ""
    kind: str = ""
    run: str = ""
    status: str = PENDING
    expiring: bool = False


def _filters(command: F) -> F:
    """Add the options that make a `Wanted`."""
    return reduce(lambda inner, option: option(inner), reversed(_FILTERS), command)


@click.group(short_help="List, show and decide what waits for a person.")
def approvals() -> None:
    """Manage requests for approval. REQUEST is an ID or the start of an ID."""


@approvals.command("list")
@with_database
@json_option
@_filters
@click.option(
    "--status",
    type=click.Choice(STATUSES),
    help="Only requests of this status. Default: pending. A superseded request was replaced by a "
    "newer one.",
)
@click.option("--all", "decided_too", is_flag=True, help="Requests of every status.")
def list_approvals(as_json: bool, status: str | None, decided_too: bool, **wanted: Any) -> None:
    """Show pending requests, oldest first."""
    wanted["status"] = status or ("" if decided_too else PENDING)
    rows = list(wanted_requests(Wanted(**wanted)))
    if as_json:
        for request in rows:
            print(json.dumps(as_data(request)))
        return
    if not rows:
        print("Nothing waits for you.", file=sys.stderr)
        return
    console = new_console()
    is_narrow = console.is_terminal and console.width < _WIDE
    print_table(*_table_parts(rows, is_narrow=is_narrow), shorten=("TOOL", "AGENT"))


@approvals.command("watch")
@with_database
@json_option
@_filters
def watch(as_json: bool, **wanted: Any) -> int:
    """Show pending requests as they appear and disappear, until Ctrl-C."""
    kept = Wanted(**wanted)
    console = new_console()
    # A shell ignores SIGINT for processes in the background; here it is the way to end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if console.is_terminal and not as_json:
            with Live(
                as_table(_waiting(kept), console.width), console=console, auto_refresh=False
            ) as live:
                while True:
                    time.sleep(POLL_SECONDS)
                    live.update(as_table(_waiting(kept), console.width), refresh=True)
        _tell_changes(kept, as_json=as_json)
    except KeyboardInterrupt:
        return OK


def _tell_changes(wanted: Wanted, *, as_json: bool) -> NoReturn:
    known: dict[str, ApprovalRequest] = {}
    while True:
        now = {request.id: request for request in _waiting(wanted)}
        for request in now.values():
            before = known.get(request.id)
            if before is None or before.first_approved_at != request.first_approved_at:
                _tell(request, as_json=as_json)
        gone = list(known.keys() - now.keys())
        for request in ApprovalRequest.objects.filter(pk__in=gone).order_by("id"):
            request.run = known[request.id].run
            _tell(request, as_json=as_json)
        known = now
        time.sleep(POLL_SECONDS)


def _tell(request: ApprovalRequest, *, as_json: bool) -> None:
    if as_json:
        line = json.dumps(as_data(request))
    else:
        tool, given = one_line(request.tool, 30), short_input(request.input)
        line = f"{request.id}  {status_words(request)}  {tool}  {given}"
    print(line, flush=True, file=sys.stdout)


def _waiting(wanted: Wanted) -> list[ApprovalRequest]:
    return list(wanted_requests(wanted))


def wanted_requests(wanted: Wanted) -> QuerySet[ApprovalRequest]:
    """Return the local user's requests that match, with the related rows that a list shows.

    Raises `CliError` for an unknown kind.
    """
    found = requests_with_rows()
    if wanted.status:
        found = found.filter(status=wanted.status)
    if wanted.agent:
        found = found.filter(run__agent_version__agent__slug=wanted.agent)
    if wanted.tool:
        found = found.filter(tool=wanted.tool)
    if wanted.kind:
        kinds = [name for name, _ in request_kinds()]
        if wanted.kind not in kinds:
            raise CliError(f"Unknown kind {wanted.kind!r}. Use one of {', '.join(kinds)}.")
        found = found.filter(kind=wanted.kind)
    if wanted.run:
        found = found.filter(run__id__startswith=wanted.run.lower())
    if wanted.expiring:
        return found.filter(expires_at__isnull=False).order_by("expires_at", "id")
    return found.order_by("id")


def requests_with_rows() -> QuerySet[ApprovalRequest]:
    """Return the requests that the local user may see, with the related rows that are shown."""
    return approvals_for(local_user()).select_related(
        "run__agent_version__agent",
        "run__owner",
        "run__thread",
        *request_relations(),
        "first_approver",
        "decided_by",
    )


def columns(request: ApprovalRequest) -> tuple[str | Text, ...]:
    """Return one request as a row of the list."""
    return (
        request.id,
        Text(one_line(request.run.spec["slug"], 30)),
        request.run_id,
        status_words(request),
        length(timezone.now() - request.created_at),
        expiry(request),
        Text(one_line(request.tool, 30)),
        Text(short_input(request.input)),
    )


def as_table(requests: Iterable[ApprovalRequest], width: int) -> Table:
    """Return a table of requests for a terminal of `width` columns."""
    heads, rows = _table_parts(requests, is_narrow=width < _WIDE)
    return table_of(heads, rows, width=width, shorten=("TOOL", "AGENT"))


def _table_parts(
    requests: Iterable[ApprovalRequest], *, is_narrow: bool
) -> tuple[list[str], list[list[str | Text]]]:
    kept = [at for at, head in enumerate(_HEADS) if not (is_narrow and head in _ONLY_WIDE)]
    rows = [columns(request) for request in requests]
    return [_HEADS[at] for at in kept], [[row[at] for at in kept] for row in rows]


@approvals.command("show")
@click.argument("request_id", metavar="REQUEST")
@with_database
@json_option
def show(request_id: str, as_json: bool) -> None:
    """Show the whole call, or the whole memory change, that would be made."""
    request = by_id(requests_with_rows(), request_id, "request")
    if as_json:
        print(json.dumps(in_full(request)))
        return
    console = new_console()
    console.print(f"request {request.id} of run {request.run_id}: {request.status}")
    show_request(request, console)
    show_outcome(request, console)
    if request.status == ApprovalStatus.PENDING:
        answers = pending_responses(request, local_user())
        show_refused(answers, console)
        if answers.offered:
            console.print(f"  decisions: {', '.join(answers.offered)}")
    console.print(f"  digest: {request.digest}")


def in_full(request: ApprovalRequest) -> dict[str, Any]:
    """Return `as_data` with the reading, the outcome and, for a proposal, its change."""
    kind = proposal_kind(request)
    data = {
        **as_data(request),
        "reading": reading_as_json(review_of_request(request)),
        "edited_input": request.edited_input,
        "reason": request.reason,
        "decided_by": str(request.decided_by) if request.decided_by else None,
        "decided_at": request.decided_at.isoformat() if request.decided_at else None,
    }
    if kind is not None:
        data[kind.name] = kind.in_full(request)
    return data


def as_data(request: ApprovalRequest) -> dict[str, Any]:
    return {
        "id": request.id,
        "run": request.run_id,
        "agent": request.run.spec["slug"],
        "owner": request.run.owner.get_username(),
        "kind": request.kind,
        "tool": request.tool,
        "input": request.input,
        "prompt": request.prompt,
        "status": request.status,
        "decision": request.decision,
        "allowed_decisions": pending_responses(request, local_user()).offered,
        "approvals_needed": request.approvals_needed,
        "first_approver": str(request.first_approver) if request.first_approver else None,
        "self_approval": request.self_approval,
        "digest": request.digest,
        "created_at": request.created_at.isoformat(),
        "expires_at": request.expires_at.isoformat() if request.expires_at else None,
    }


def status_words(request: ApprovalRequest) -> str:
    """Return the decision or the status, with the number of approvals if two are required."""
    status = request.decision or request.status
    if status != ApprovalStatus.PENDING or request.approvals_needed == 1:
        return status
    return f"{status} ({int(request.first_approved_at is not None)} of {request.approvals_needed})"
