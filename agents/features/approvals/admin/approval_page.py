"""The page of one approval request in the admin. It always shows the call.

Of a long input it shows the start, the end and the size of the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext

from agents.doors.admin.numbers import span
from agents.doors.admin.text import ShownText, decided_input, shown, typed
from agents.features.approvals.edited_review import edited_review
from agents.hidden_text import escaped_json, escaped_text, visible
from agents.kernel.proposals import proposal_kind, run_request_kind
from agents.models import ApprovalRequest
from agents.review.json_text import is_editable, size_of, text_of
from agents.review.room import CHARACTERS
from agents.selectors.queue import paths_of_runs
from agents.services.agent_definitions.actions import SCRIPTED
from agents.services.approvals.request_review import review_of_request
from agents.states import ApprovalStatus, Decision


@dataclass(frozen=True, slots=True)
class TrailEntry:
    """An event in the history of a request. `by` is empty for events without a person.

    `said` is the reason of a decision.
    """

    at: datetime | None
    what: str
    by: str = ""
    said: ShownText | None = None


def shown_request(approval: ApprovalRequest) -> dict[str, Any]:
    """Return the template context that shows the request as it was created."""
    kind = proposal_kind(approval)
    background = kind.background(approval) if kind is not None else None
    return {
        "asked": approval,
        "tool": visible(approval.tool),
        "review": review_of_request(approval),
        "input": decided_input(approval.input),
        "prompt": shown(approval.prompt, limit=None),
        "age": age(approval),
        "expires": expires(approval),
        "approvals": approvals(approval),
        "path": [visible(name) for name in paths_of_runs([approval.run])[approval.run_id]],
        "agents_reason": shown(background.reason, limit=None) if background else None,
        "sources": _sources(background.sources if background else ()),
        "is_scripted": approval.run.spec.get("provider") == SCRIPTED,
    }


def trail(approval: ApprovalRequest) -> list[TrailEntry]:
    """Return the history of a request, oldest first."""
    entries = [
        TrailEntry(
            approval.created_at,
            gettext("asked in a run of %(owner)s") % {"owner": visible(str(approval.run.owner))},
        )
    ]
    if approval.first_approved_at is not None:
        by = _name(approval.first_approver)
        entries.append(TrailEntry(approval.first_approved_at, gettext("approved first"), by))
    if approval.status == ApprovalStatus.DECIDED:
        reason = shown(approval.reason) if approval.reason else None
        outcome = str(Decision(approval.decision).label)
        entries.append(TrailEntry(approval.decided_at, outcome, _name(approval.decided_by), reason))
    elif approval.status == ApprovalStatus.EXPIRED:
        entries.append(TrailEntry(approval.expires_at, gettext("expired without a decision")))
    elif approval.status == ApprovalStatus.CANCELLED:
        entries.append(TrailEntry(approval.run.ended_at, gettext("withdrawn: the run has ended")))
    elif approval.status == ApprovalStatus.SUPERSEDED:
        later = ApprovalRequest.objects.filter(tool_call=approval.tool_call, id__gt=approval.pk)
        at = later.order_by("id").values_list("created_at", flat=True).first()
        entries.append(TrailEntry(at, gettext("replaced by a new request: it has changed")))
    return entries


def edited(approval: ApprovalRequest) -> dict[str, Any] | None:
    """Return the edited input, as a diff to the original and in full. None if it was not edited."""
    review = edited_review(approval)
    if review is None:
        return None
    return {"review": review, "input": decided_input(approval.edited_input)}


def text_to_edit(approval: ApprovalRequest) -> str | None:
    """Return the initial text of the edit field: the text of a proposal, or the input as JSON.

    For a request about a run, only the part that an edit may change. None if it is too long to edit
    on a page. Invisible characters are escaped, so that the person sees exactly the text that would
    be stored.
    """
    kind = proposal_kind(approval)
    if (about_run := run_request_kind(approval)) is not None:
        return typed(about_run.editable(approval))
    if kind is not None:
        content = kind.text(approval)
        return escaped_text(content) if is_editable(content) else None
    if size_of(approval.input, CHARACTERS) > CHARACTERS:
        return None
    text = text_of(approval.input)
    return escaped_json(text) if is_editable(text) else None


def age(approval: ApprovalRequest) -> str:
    return span(timezone.now() - approval.created_at)


def expires(approval: ApprovalRequest) -> str:
    """Return when a pending request expires, as `in 3 h` or `now`. "" if it does not expire."""
    if approval.expires_at is None or approval.status != ApprovalStatus.PENDING:
        return ""
    left = approval.expires_at - timezone.now()
    if left.total_seconds() <= 0:
        return gettext("now")
    return gettext("in %(length)s") % {"length": span(left)}


def approvals(approval: ApprovalRequest) -> str:
    """Return the number of approvals so far, as in “1 of 2”."""
    if approval.decision in (Decision.APPROVE, Decision.EDIT):
        count = approval.approvals_needed
    else:
        count = int(approval.first_approved_at is not None)
    return gettext("%(count)s of %(all)s") % {"count": count, "all": approval.approvals_needed}


def _name(person: object) -> str:
    return gettext("a removed user") if person is None else visible(str(person))


def _sources(sources: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the sources that the run had read before it proposed the change."""
    return [
        {
            "step": source["step"],
            "tool": visible(source["tool"]),
            "source": visible(source["source"]),
        }
        for source in sources
    ]
