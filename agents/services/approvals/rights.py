"""The rights to decide requests."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser

from agents.kernel.proposals import proposal_kind, run_request_kind
from agents.models import ApprovalRequest, Run
from agents.services.errors import Conflict, NotAllowed
from agents.states import Decision


def check_right(request: ApprovalRequest, run: Run, decision: str, by: AbstractBaseUser) -> None:
    """Raise `NotAllowed`, or `Conflict` for a second approval by the same person.

    The run's owner may always reject. Only the owner and approvers can see a request.
    """
    if decision == Decision.REJECT:
        return
    is_owner = run.owner_id == by.pk
    if is_owner and not request.self_approval:
        raise NotAllowed(
            "Nobody approves the calls of their own runs here: somebody else has to decide, or "
            "you reject it."
        )
    if decision == Decision.APPROVE and request.first_approver_id == by.pk:
        raise Conflict("You have approved this: a second person has to, too.", code="approved")
    if (kind := proposal_kind(request) or run_request_kind(request)) is not None:
        kind.check_right(request, by)
