"""Diffs of a person's changes to an input, which share one size limit."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agents.features.approvals.edited_review import review_of_edit
from agents.models import ApprovalKind, ApprovalRequest
from agents.review import as_text
from agents.states import ApprovalStatus


def asked(given: dict[str, Any]) -> ApprovalRequest:
    return ApprovalRequest(kind=ApprovalKind.TOOL, status=ApprovalStatus.PENDING, input=given)


def test_only_json_differences_are_shown() -> None:
    before = {"same": [1.0], "text": "a", "flag": 1, "gone": 1}
    text = as_text(
        review_of_edit(asked(before), {"same": [1.0], "text": "b", "flag": True, "new": 2})
    )
    for name in ("text", "flag", "gone", "new"):
        assert f"{name} (" in text
    assert "same" not in text


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 99, 100_000])
def test_many_changes_cost_little_and_are_counted(count: int) -> None:
    size = 2_000_000 // count
    before = {f"k{number}": "x\n" * size for number in range(count)}
    after = {f"k{number}": "y\n" * size + "the end" for number in range(count)}
    started = time.process_time()
    review = review_of_edit(asked(before), after)
    text = as_text(review)
    assert time.process_time() - started < 4.0
    assert len(review.sections) == min(count, 100)
    assert len(text) < 2_000_000
    assert text.rstrip().endswith("+ the end ⟨no line break at the end⟩")
    more = [note.text for note in review.notes]
    assert len(more) == (count > 100)
    assert all(note.startswith("99,900 more inputs were changed") for note in more)
