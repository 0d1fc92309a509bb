"""Comparison of an edited input with the requested one."""

from __future__ import annotations

from typing import Any

from agents.kernel.proposals import proposal_kind, run_request_kind
from agents.models import ApprovalRequest
from agents.review import Review
from agents.review.diff import diff_section
from agents.review.json_text import compact, text_of
from agents.review.parts import DiffSection, Note
from agents.review.room import CHARACTERS, Room, end_share
from agents.states import ApprovalStatus, Decision

SECTIONS = 100
"""If more inputs were changed, the first and the last ones are shown."""
_WHOLE = (
    "To see the whole input, use `vel approvals show ID --json` or `GET /api/v1/approvals/ID`: "
    "it is `edited_input` once it is decided."
)


def edited_review(request: ApprovalRequest) -> Review | None:
    """Return a diff from the requested to the approved input, or None if it was not edited."""
    if request.decision != Decision.EDIT or request.edited_input is None:
        return None
    return review_of_edit(request, request.edited_input)


def review_of_edit(request: ApprovalRequest, arguments: dict[str, Any]) -> Review:
    """Return a diff from the requested input to `arguments` (as in `DecisionRequest.input`).

    The edit may be decided or only proposed.
    """
    kind = proposal_kind(request)
    is_decided = request.status == ApprovalStatus.DECIDED
    if kind is not None:
        section = kind.edit_review(request, arguments, _WHOLE)
        return Review(f"What {'was' if is_decided else 'would be'} saved instead", (section,))
    original = request.input if isinstance(request.input, dict) else {}
    if run_request_kind(request) is not None:
        arguments = {**original, **arguments}  # an edit may contain only changed fields
    names = [
        name
        for name in original
        if name not in arguments or not _same(original[name], arguments[name])
    ]
    names += [name for name in arguments if name not in original]
    sections, notes = _sections(names, original, arguments)
    return Review(f"What {'ran' if is_decided else 'would run'} instead", sections, notes)


def _sections(
    names: list[str], original: dict[str, Any], arguments: dict[str, Any]
) -> tuple[tuple[DiffSection, ...], tuple[Note, ...]]:
    """Return a diff for each name. They share the space and the comparison costs of one section."""
    notes: tuple[Note, ...] = ()
    if missing := len(names[SECTIONS:]):
        last = end_share(SECTIONS)
        names = [*names[: SECTIONS - last], *names[-last:]]
        text = f"{missing:,} more inputs were changed, and are not shown. {_WHOLE}"
        notes = (Note(text, "warning"),)
    room = Room()
    left = CHARACTERS
    sections = []
    for number, name in enumerate(names):
        share = room.part(len(names) - number)
        old, new = _text(original, name, left), _text(arguments, name, left)
        for values in (original, arguments):
            if not isinstance(values.get(name, ""), str):
                left = max(left - max(len(old or ""), len(new or "")), 0)
        sections.append(diff_section(name, old, new, room=share, where=_WHOLE))
        room.give_back(share)
    return tuple(sections), notes


def _same(old: object, new: object) -> bool:
    """Return whether both are the same JSON. 1 and true differ, though not in Python."""
    if type(old) is not type(new):
        return False
    if isinstance(old, str | int):
        return old == new
    return compact(old) == compact(new)


def _text(arguments: dict[str, Any], name: str, limit: int) -> str | None:
    return text_of(arguments[name], limit) if name in arguments else None
