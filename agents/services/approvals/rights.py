"""The rights to decide requests."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser

from agents.kernel.proposals import proposal_kind, run_request_kind
from agents.models import ApprovalRequest, Run
from agents.services.errors import Conflict, NotAllowed, ServiceError
from agents.states import Decision


def check_right(request: ApprovalRequest, run: Run, decision: str, by: AbstractBaseUser) -> None:
    """Raise `NotAllowed`, or `Conflict` for a second approval by the same person.

    Everybody who may see a request may reject it, so the caller must have checked that. Only the
    run's owner may decide a private request.
    """
    is_owner = run.owner_id == by.pk
    if request.is_private and not is_owner:
        raise NotAllowed("Only the owner of the run can decide this request.")
    if decision == Decision.REJECT:
        return
    if is_owner and not request.self_approval:
        raise NotAllowed(
            "This agent does not allow you to approve calls of your own runs. Another person must "
            "decide, or you reject the call."
        )
    if decision == Decision.APPROVE and request.first_approver_id == by.pk:
        raise Conflict(
            "You have approved this already. A second person must approve it, too.", code="approved"
        )
    if (kind := proposal_kind(request) or run_request_kind(request)) is not None:
        kind.check_right(request, by)


class Rights:
    """The rights of one person. Each check runs once and is then cached."""

    def __init__(self, person: AbstractBaseUser) -> None:
        self._person = person
        self._known: dict[tuple[object, ...], str] = {}

    @property
    def person_id(self) -> Any:
        return self._person.pk

    def refusal(self, request: ApprovalRequest, decision: str) -> str:
        """Return why the person may not make a decision; empty if the person may."""
        # The values that `check_right` uses.
        requested = (
            decision,
            request.kind,
            request.run.agent_version.agent_id if proposal_kind(request) else None,
            request.pk if run_request_kind(request) else None,
            request.run.owner_id == self._person.pk,
            request.is_private,
            request.self_approval,
            request.first_approver_id == self._person.pk,
        )
        if requested not in self._known:
            self._known[requested] = self._ask(request, decision)
        return self._known[requested]

    def _ask(self, request: ApprovalRequest, decision: str) -> str:
        try:
            check_right(request, request.run, decision, self._person)
        except ServiceError as error:
            return error.message
        return ""
