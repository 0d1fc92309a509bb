"""The actions of `vel approvals list` and `vel approvals show`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from rich.table import Table
from rich.text import Text

from agents.models import ApprovalRequest
from agents.reading import as_json
from agents.selectors.visible import approvals_for
from agents.services.open_answers import open_answers
from agents.services.request_reading import reading_of_request
from agents.states import ApprovalStatus
from velproject.cli.commands.approvals.ask import show_refused
from velproject.cli.commands.approvals.shown_request import (
    expiry,
    length,
    show_outcome,
    show_request,
)
from velproject.cli.console import new_console, print_table, table_of
from velproject.cli.find import by_id
from velproject.cli.local_user import local_user
from velproject.cli.terminal import one_line
from velproject.cli.wording import short_input

_HEADS = ("REQUEST", "AGENT", "RUN", "STATUS", "AGE", "EXPIRES", "TOOL", "INPUT")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which requests to list. Empty texts fit all; `status` is one, or empty for all of them.

    `run` is the beginning of an id, the others are whole names. `expiring`: those that expire, the
    next one first.
    """

    agent: str = ""
    tool: str = ""
    kind: str = ""
    run: str = ""
    status: str = ApprovalStatus.PENDING
    expiring: bool = False


def list_approvals(*, as_json: bool, wanted: dict[str, Any]) -> None:
    """Oldest first."""
    rows = list(wanted_requests(Wanted(**wanted)))
    if as_json:
        for request in rows:
            print(json.dumps(as_data(request)))
        return
    if not rows:
        print("Nothing waits for you.", file=sys.stderr)
        return
    print_table(_HEADS, map(columns, rows))


def wanted_requests(wanted: Wanted) -> QuerySet[ApprovalRequest]:
    """Those of the local user, with what a list shows."""
    found = requests_with_rows()
    if wanted.status:
        found = found.filter(status=wanted.status)
    if wanted.agent:
        found = found.filter(run__agent_version__agent__slug=wanted.agent)
    if wanted.tool:
        found = found.filter(tool=wanted.tool)
    if wanted.kind:
        found = found.filter(kind=wanted.kind)
    if wanted.run:
        found = found.filter(run__id__startswith=wanted.run.lower())
    if wanted.expiring:
        return found.filter(expires_at__isnull=False).order_by("expires_at", "id")
    return found.order_by("id")


def requests_with_rows() -> QuerySet[ApprovalRequest]:
    """The local user's requests, with the rows that are shown of them."""
    return approvals_for(local_user()).select_related(
        "run__agent_version__agent",
        "run__owner",
        "run__thread",
        "memory_edit",
        "first_approver",
        "decided_by",
    )


def columns(request: ApprovalRequest) -> tuple[str | Text, ...]:
    """One request as a row of the list."""
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


def as_table(requests: Iterable[ApprovalRequest]) -> Table:
    return table_of(_HEADS, map(columns, requests))


def show(*, request_id: str, as_json: bool) -> None:
    """The whole request."""
    request = by_id(requests_with_rows(), request_id, "request")
    if as_json:
        print(json.dumps(in_full(request)))
        return
    console = new_console()
    console.print(f"request {request.id} of run {request.run_id}: {request.status}")
    show_request(request, console)
    show_outcome(request, console)
    if request.status == ApprovalStatus.PENDING:
        answers = open_answers(request, local_user())
        show_refused(answers, console)
        if answers.offered:
            console.print(f"  decisions: {', '.join(answers.offered)}")
    console.print(f"  digest: {request.digest}")


def in_full(request: ApprovalRequest) -> dict[str, Any]:
    """`as_data` with the reading, the outcome and, for a memory edit, where it comes from."""
    edit = request.memory_edit
    data = {
        **as_data(request),
        "reading": as_json(reading_of_request(request)),
        "edited_input": request.edited_input,
        "reason": request.reason,
        "decided_by": str(request.decided_by) if request.decided_by else None,
        "decided_at": request.decided_at.isoformat() if request.decided_at else None,
    }
    if edit is not None:
        data["memory"] = {
            "path": edit.path,
            "operation": edit.operation,
            "reason": edit.reason,
            "warnings": edit.warnings,
            "provenance": edit.provenance,
            "previous_content": edit.previous_content,
            "proposed_content": edit.proposed_content,
        }
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
        "allowed_decisions": request.allowed_decisions,
        "approvals_needed": request.approvals_needed,
        "first_approver": str(request.first_approver) if request.first_approver else None,
        "self_approval": request.self_approval,
        "digest": request.digest,
        "created_at": request.created_at.isoformat(),
        "expires_at": request.expires_at.isoformat() if request.expires_at else None,
    }


def status_words(request: ApprovalRequest) -> str:
    """The decision or the status, and how many have approved where two must."""
    status = request.decision or request.status
    if status != ApprovalStatus.PENDING or request.approvals_needed == 1:
        return status
    return f"{status} ({int(request.first_approved_at is not None)} of {request.approvals_needed})"
