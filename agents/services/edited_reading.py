"""What a person made of a request, beside what was asked."""

from __future__ import annotations

import json
from typing import Any

from agents.models import ApprovalKind, ApprovalRequest
from agents.reading import Reading
from agents.reading.diff import diff_section
from agents.states import ApprovalStatus, Decision
from memory.scanner import scan


def edited_reading(request: ApprovalRequest) -> Reading | None:
    """A diff from what was asked to what was approved instead; None where nothing was edited."""
    if request.decision != Decision.EDIT or request.edited_input is None:
        return None
    return reading_of_edit(request, request.edited_input)


def reading_of_edit(request: ApprovalRequest, given: dict[str, Any]) -> Reading:
    """The same for an edit that is still to be decided. `given` is `DecisionRequest.input`."""
    edit = request.memory_edit
    is_decided = request.status == ApprovalStatus.DECIDED
    if edit is not None:
        content = str(given.get("content", ""))
        section = diff_section(edit.path, edit.proposed_content, content, findings=scan(content))
        return Reading(f"What {'was' if is_decided else 'would be'} saved instead", (section,))
    asked = request.input if isinstance(request.input, dict) else {}
    if request.kind == ApprovalKind.BUDGET:
        given = {**asked, **given}  # of which only the amount may differ
    names = [*asked, *(name for name in given if name not in asked)]
    pairs = [(name, _text(asked, name), _text(given, name)) for name in names]
    sections = [diff_section(name, old, new) for name, old, new in pairs if old != new]
    return Reading(f"What {'ran' if is_decided else 'would run'} instead", tuple(sections))


def _text(given: dict[str, Any], name: str) -> str | None:
    if name not in given:
        return None
    value = given[name]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
