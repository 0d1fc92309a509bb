"""Parts of a card: editors, approvals, sources and outcome, as text that is ready to display."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from django.utils import timezone
from django.utils.timesince import timesince
from django.utils.translation import gettext

from agents.hidden_text import escaped_json, escaped_text, visible
from agents.kernel.proposals import proposal_kind, run_request_kind
from agents.models import ApprovalRequest
from agents.review.json_text import compact, is_editable, shown_text, size_of, text_of
from agents.review.room import CHARACTERS
from agents.states import ApprovalStatus, Decision

SOURCE_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Editor:
    """An editable text: `json` for the whole input, `content` for the text of one file."""

    kind: Literal["json", "content"]
    label: str
    text: str
    has_escapes: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A source that the run has read and that other people may have written."""

    step: int
    tool: str
    source: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a request. `edited` is the input that was approved instead of the original."""

    status: str
    text: str
    at: str
    reason: str
    edited: str


def editors_of(row: ApprovalRequest) -> Iterable[Editor]:
    """Yield the editors of a request. Text that is too long to edit in a page has no editor."""
    if (kind := proposal_kind(row)) is not None:
        text = kind.text(row)
        if is_editable(text):
            yield _content_editor(str(kind.text_label), text)
        return
    if (about_run := run_request_kind(row)) is not None:
        yield Editor("json", str(about_run.text_label), json.dumps(about_run.editable(row)))
        return
    content = row.input.get("content") if isinstance(row.input, dict) else None
    if row.tool == "write_file" and isinstance(content, str) and is_editable(content):
        yield _content_editor(gettext("The content of the file"), content)
    if size_of(row.input, CHARACTERS) > CHARACTERS:
        return
    whole = text_of(row.input) if isinstance(row.input, dict) else compact(row.input)
    if is_editable(whole):
        yield Editor("json", gettext("Input to run instead, as JSON"), escaped_json(whole))


def _content_editor(label: str, text: str) -> Editor:
    typed = escaped_text(text)
    return Editor("content", label, typed, has_escapes=typed != text)


def approvals_of(row: ApprovalRequest) -> str:
    if row.approvals_needed < 2:
        return ""
    if row.first_approved_at is None:
        text = gettext("0 of %(needed)s: two different people must approve")
        return text % {"needed": row.approvals_needed}
    by = row.first_approver.get_username() if row.first_approver else gettext("somebody")
    text = gettext("1 of %(needed)s: %(by)s approved")
    return visible(text % {"needed": row.approvals_needed, "by": by})


def outcome_of(row: ApprovalRequest) -> Outcome:
    by = visible(row.decided_by.get_username()) if row.decided_by else gettext("somebody")
    words = {
        Decision.APPROVE: gettext("Approved by %(by)s"),
        Decision.EDIT: gettext("Approved with changes by %(by)s"),
        Decision.REJECT: gettext("Rejected by %(by)s"),
        Decision.RESPOND: gettext("Answered by %(by)s"),
    }
    ends = {
        ApprovalStatus.EXPIRED: gettext("Expired without a decision"),
        ApprovalStatus.CANCELLED: gettext("Withdrawn: the run was ended"),
        ApprovalStatus.SUPERSEDED: gettext("Replaced by a new request: its content has changed"),
    }
    text = words.get(Decision(row.decision), "") % {"by": by} if row.decision else ""
    if row.status != ApprovalStatus.DECIDED:
        end = ends.get(ApprovalStatus(row.status), row.get_status_display())
        text = f"{end}. {text}" if text else end
    ended: datetime = getattr(row, "ended_at", None) or row.decided_at or row.created_at
    return Outcome(
        status=row.decision if row.status == ApprovalStatus.DECIDED else row.status,
        text=text,
        at=ended.isoformat(),
        reason=visible(row.reason),
        edited=_edited(row),
    )


def _edited(row: ApprovalRequest) -> str:
    if row.edited_input is None:
        return ""
    if proposal_kind(row) is not None and isinstance(row.edited_input.get("content"), str):
        return shown_text(row.edited_input["content"])
    return shown_text(row.edited_input)


def source_of(entry: dict[str, Any]) -> Source:
    source = visible(str(entry.get("source", "")))[:SOURCE_CHARACTERS]
    return Source(entry.get("step") or 0, visible(str(entry.get("tool", ""))), source)


def until(moment: datetime) -> str:
    now = timezone.now()
    if moment <= now:
        return gettext("has expired")
    return gettext("expires in %(length)s") % {"length": timesince(now, moment, depth=1)}
