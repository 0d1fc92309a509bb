"""One approval request in the admin: the call is never folded away.

A long input is shown with its beginning, its end and the size of the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from agents.admin.numbers import span
from agents.admin.text import ShownText, decided_input, shown, typed
from agents.hidden_text import escaped_json, escaped_text, visible
from agents.models import ApprovalKind, ApprovalRequest
from agents.review.excerpts import is_editable
from agents.review.json_text import size_of, text_of
from agents.review.room import CHARACTERS
from agents.selectors.queue import paths_of_runs
from agents.services.agents import SCRIPTED
from agents.services.budget_answers import editable_part
from agents.services.edited_review import edited_review
from agents.services.request_review import review_of_request
from agents.states import ApprovalStatus, Decision


@dataclass(frozen=True, slots=True)
class TrailEntry:
    """One thing that happened to a request. `by` is empty where nobody did it."""

    at: datetime | None
    what: str
    by: str = ""
    said: ShownText | None = None


def shown_request(asked: ApprovalRequest) -> dict[str, Any]:
    """What templates need to show the request as it is asked."""
    edit = asked.memory_edit
    return {
        "asked": asked,
        "tool": visible(asked.tool),
        "review": review_of_request(asked),
        "input": decided_input(asked.input),
        "prompt": shown(asked.prompt, limit=None),
        "age": age(asked),
        "expires": expires(asked),
        "approvals": approvals(asked),
        "path": [visible(name) for name in paths_of_runs([asked.run])[asked.run_id]],
        "agents_reason": shown(edit.reason, limit=None) if edit else None,
        "sources": _sources(asked),
        "is_scripted": asked.run.spec.get("provider") == SCRIPTED,
    }


def trail(asked: ApprovalRequest) -> list[TrailEntry]:
    """Who did what, in the order of time."""
    entries = [TrailEntry(asked.created_at, f"asked in a run of {visible(str(asked.run.owner))}")]
    if asked.first_approved_at is not None:
        by = _name(asked.first_approver)
        entries.append(TrailEntry(asked.first_approved_at, "approved first", by))
    if asked.status == ApprovalStatus.DECIDED:
        said = shown(asked.reason) if asked.reason else None
        outcome = Decision(asked.decision).label
        entries.append(TrailEntry(asked.decided_at, outcome, _name(asked.decided_by), said))
    elif asked.status == ApprovalStatus.EXPIRED:
        entries.append(TrailEntry(asked.expires_at, "expired: nobody decided in time"))
    elif asked.status == ApprovalStatus.CANCELLED:
        entries.append(TrailEntry(asked.run.ended_at, "withdrawn: the run has ended"))
    elif asked.status == ApprovalStatus.SUPERSEDED:
        later = ApprovalRequest.objects.filter(tool_call=asked.tool_call, id__gt=asked.pk)
        at = later.order_by("id").values_list("created_at", flat=True).first()
        entries.append(TrailEntry(at, "asked anew: it has changed"))
    return entries


def edited(asked: ApprovalRequest) -> dict[str, Any] | None:
    """What a person made of it: as a diff to what was asked, and in full."""
    review = edited_review(asked)
    if review is None:
        return None
    return {"review": review, "input": decided_input(asked.edited_input)}


def text_to_edit(asked: ApprovalRequest) -> str | None:
    """What stands in the field for changes: the whole file of the memory, or the input as JSON.

    None if that is too long to be edited on a page. Invisible characters are escaped in both, so
    that the person sees what would be kept.
    """
    edit = asked.memory_edit
    if asked.kind == ApprovalKind.BUDGET:
        return typed(editable_part(asked))
    if edit is not None:
        content = edit.proposed_content or ""
        return escaped_text(content) if is_editable(content) else None
    if size_of(asked.input, CHARACTERS) > CHARACTERS:
        return None
    text = text_of(asked.input)
    return escaped_json(text) if is_editable(text) else None


def age(asked: ApprovalRequest) -> str:
    return span(timezone.now() - asked.created_at)


def expires(asked: ApprovalRequest) -> str:
    """How long a pending request still stands; empty where that has no end."""
    if asked.expires_at is None or asked.status != ApprovalStatus.PENDING:
        return ""
    left = asked.expires_at - timezone.now()
    return f"in {span(left)}" if left.total_seconds() > 0 else "now"


def approvals(asked: ApprovalRequest) -> str:
    """How many of those who must approve have done so, as in “1 of 2”."""
    if asked.decision in (Decision.APPROVE, Decision.EDIT):
        given = asked.approvals_needed
    else:
        given = int(asked.first_approved_at is not None)
    return f"{given} of {asked.approvals_needed}"


def _name(person: object) -> str:
    return "a removed user" if person is None else visible(str(person))


def _sources(asked: ApprovalRequest) -> list[dict[str, Any]]:
    """Where the text came from that the run had read before it asked to keep something."""
    provenance = asked.memory_edit.provenance if asked.memory_edit else {}
    return [
        {
            "step": source["step"],
            "tool": visible(source["tool"]),
            "source": visible(source["source"]),
        }
        for source in provenance.get("sources", [])
    ]
