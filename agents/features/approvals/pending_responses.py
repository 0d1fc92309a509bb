"""The decisions of a request that a person may make, and the reasons against the others.

This is for display only: `decide_approval` checks everything again, under the lock.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from django.contrib.auth.base_user import AbstractBaseUser
from django.utils import timezone

from agents.kernel.proposals import is_beside, run_request_kind
from agents.models import ApprovalRequest
from agents.services.approvals.rights import Rights
from agents.states import ApprovalStatus, RunStatus


@dataclass(frozen=True, slots=True)
class PendingResponses:
    """`offered`: decisions that the person may make. `refused`: reasons, each with its decisions.

    `closed` is the reason why the request can no longer be decided, or empty.
    """

    offered: tuple[str, ...] = ()
    refused: dict[str, tuple[str, ...]] = field(default_factory=dict)
    closed: str = ""


def pending_responses(request: ApprovalRequest, by: AbstractBaseUser) -> PendingResponses:
    """Return the decisions for a request that `by` may see, with its run loaded."""
    return responses_by(request, Rights(by))


def responses_by(request: ApprovalRequest, rights: Rights) -> PendingResponses:
    """Return the same for the person of `rights`. Load the rights once for many requests."""
    if request.status != ApprovalStatus.PENDING:
        return PendingResponses(closed=f"The request is {request.status}.")
    waits = (
        request.run.status == RunStatus.WAITING
        or is_beside(request)
        or (run_request_kind(request) is not None and not request.run.has_ended)
    )
    if not waits:
        return PendingResponses(
            closed=f"The run is {request.run.status}: there is nothing to decide."
        )
    if request.expires_at is not None and request.expires_at <= timezone.now():
        return PendingResponses(closed="The request has expired.")
    offered: list[str] = []
    refused: dict[str, tuple[str, ...]] = {}
    for decision in request.allowed_decisions:
        if refusal := rights.refusal(request, decision):
            refused[refusal] = (*refused.get(refusal, ()), decision)
        else:
            offered.append(decision)
    return PendingResponses(tuple(offered), refused)
