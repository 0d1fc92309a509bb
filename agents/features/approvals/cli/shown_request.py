"""An approval request on a terminal, shown in full: people must not approve hidden content."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone
from rich.console import Console
from rich.text import Text

from agents.doors.cli.console import show_review
from agents.doors.cli.terminal import one_line
from agents.features.approvals.edited_review import edited_review
from agents.hidden_text import visible
from agents.kernel.proposals import Background, proposal_kind
from agents.models import ApprovalRequest
from agents.selectors.queue import paths_of_runs
from agents.services.approvals.request_review import review_of_request
from agents.states import ApprovalStatus


def show_request(request: ApprovalRequest, console: Console) -> None:
    """Show the request, its tool, its facts and the reason."""
    console.print(Text(f"\n{visible(request.tool)} ({request.kind})", style="bold yellow"))
    for line in _facts(request):
        console.print(Text(f"  {line}", style="dim"))
    if request.prompt:
        console.print(Text(visible(request.prompt), style="yellow"))
    show_review(review_of_request(request), console)
    if (kind := proposal_kind(request)) is not None:
        _show_background(kind.background(request), console)


def show_outcome(request: ApprovalRequest, console: Console) -> None:
    """Show who decided, the decision, and any changes of the input."""
    if request.first_approved_at is not None:
        by = visible(str(request.first_approver or "a removed user"))
        console.print(Text(f"approved first by {by} {_when(request.first_approved_at)}"))
    if request.status == ApprovalStatus.DECIDED:
        by = visible(str(request.decided_by or "a removed user"))
        console.print(Text(f"{request.decision} by {by} {_when(request.decided_at)}"))
    if request.reason:
        console.print(Text(f"reason: {visible(request.reason)}"))
    edited = edited_review(request)
    if edited is not None:
        show_review(edited, console)


def length(time: timedelta) -> str:
    """Return a length of time in its largest unit: 12 s, 3 min, 2 h, 5 d."""
    seconds = max(0, int(time.total_seconds()))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def expiry(request: ApprovalRequest) -> str:
    """Return `in 3 min`, `now`, or an empty text without an expiry or if it is not pending."""
    if request.expires_at is None or request.status != ApprovalStatus.PENDING:
        return ""
    left = request.expires_at - timezone.now()
    return f"in {length(left)}" if left > timedelta() else "now"


def _facts(request: ApprovalRequest) -> list[str]:
    run = request.run
    path = " › ".join(one_line(name, 40) for name in paths_of_runs([run])[run.pk])
    facts = [f"{path}, in a run of {visible(run.owner.get_username())} ({run.pk})"]
    asked = f"asked {length(timezone.now() - request.created_at)} ago"
    left = expiry(request)
    facts.append(f"{asked}, expires {left}" if left else asked)
    if request.approvals_needed > 1:
        given = int(request.first_approved_at is not None)
        facts.append(f"{given} of {request.approvals_needed} approvals")
    if not request.self_approval:
        facts.append("not for the run's owner to approve")
    return facts


def _show_background(background: Background, console: Console) -> None:
    """Show the agent's reason and the sources that others may have written, behind a bar."""
    reason = visible(background.reason).split("\n")
    lines = ["The agent's reason:", *(f"│ {line}" for line in reason)]
    sources = background.sources
    lines.append(
        "Content that it had read, which others may have written:"
        if sources
        else "It had read no content that others may have written."
    )
    lines += [
        f"│ {one_line(source['tool'], 40)} {one_line(source['source'], 200)}" for source in sources
    ]
    console.print(Text("\n".join(lines)))


def _when(at: datetime | None) -> str:
    return f"at {timezone.localtime(at):%Y-%m-%d %H:%M:%S}" if at else ""
