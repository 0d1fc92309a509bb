"""An edit request in the form that pages and API show, with the scanner's findings."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.db.models import QuerySet

from agents.models import ApprovalRequest
from agents.selectors.visible import Person, approvals_for
from agents.states import ApprovalStatus
from memory.models import KIND, MemoryEditRequest
from text_scanner import detect_suspicious_patterns

NOTE = "note"
"""A severity that the page shows and the API omits."""


def shown_edit(edit: MemoryEditRequest) -> dict[str, Any]:
    """Return an edit request with its texts and the scanner's findings, as JSON values.

    The keys are path, operation, current_content, proposed_content, reason and suspicious_flags.
    `current_content` is None for a new file. `proposed_content` is None for a deletion, and
    otherwise the whole file after the change, for every operation.
    """
    return {
        "path": edit.path,
        "operation": edit.operation,
        "current_content": edit.previous_content,
        "proposed_content": edit.proposed_content,
        "reason": edit.reason,
        "suspicious_flags": suspicious_flags(edit.proposed_content),
    }


def suspicious_flags(content: str | None) -> list[dict[str, str]]:
    """Return the scanner's warnings and dangers in `content`, without its notes.

    Each has the keys pattern, match, description and severity.
    """
    return [dict(flag) for flag in _flags(content)] if content else []


@lru_cache(maxsize=64)
def _flags(content: str) -> tuple[dict[str, str], ...]:
    # Clients poll the list of requests, and a scan of a full file takes tens of milliseconds.
    found = detect_suspicious_patterns(content)
    return tuple(flag for flag in found if flag["severity"] != NOTE)


def pending_memory_requests(user: Person, agent_id: str) -> QuerySet[ApprovalRequest]:
    """Return pending requests for this agent's memory that `user` may see, oldest first."""
    return (
        approvals_for(user)
        .filter(
            kind=KIND,
            status=ApprovalStatus.PENDING,
            memory_edit__agent=agent_id,
        )
        .select_related("memory_edit", "run__owner")
        .order_by("created_at", "pk")
    )
