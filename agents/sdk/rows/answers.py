"""Convert the value that a program passes to `resume` to decisions on pending requests."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agents.kernel.proposals import proposal_kind
from agents.middleware.inputs import with_changes
from agents.models import ApprovalRequest
from agents.services.approvals.decisions import DecisionRequest
from agents.services.errors import Conflict, InvalidRequest
from agents.spec import AgentSpec
from agents.states import Decision

APPROVE, REJECT = "approve", "reject"
_ALMOST = frozenset({"accept", "accepted", "allow", "approved", "ok", "true", "y", "yes"})
_ID = re.compile("[0-9a-hjkmnp-tv-z]{26}")
_FORMS = (
    "True or 'approve' approves, False or 'reject' rejects, any other text rejects and is the "
    "reason, a dictionary changes fields of the input."
)


def answers_to(
    waiting: Sequence[ApprovalRequest], displayed: Collection[str], value: Any
) -> dict[str, DecisionRequest]:
    """Return the decisions, by the ids of their requests.

    Args:
        waiting: The pending requests.
        displayed: The ids of the requests that the program has seen. If it has seen none, as after
            a restart, a value without ids concerns all of them.
        value: None, or a decision for all these requests, or a dictionary of decisions by id. A
            request that is not in such a dictionary remains pending.

    Raises:
        InvalidRequest: If the value is not clear.
        Conflict: If it concerns a request that is not pending.
    """
    if isinstance(value, Mapping) and _has_ids(value):
        named = _named(waiting, value)
        return {request.pk: _answer(request, value[request.pk]) for request in named}
    meant = [request for request in waiting if not displayed or request.pk in displayed]
    if not meant:
        if value is None:
            return {}
        raise Conflict(
            "The session has no pending request that you have seen. Call pending() to get the "
            "pending requests.",
            code="stale",
        )
    if len(meant) > 1 and (value is None or isinstance(value, Mapping)):
        raise InvalidRequest(
            f"{len(meant)} requests are pending: {_listed(meant)}. Pass a dictionary with a "
            "decision for each id, or True or False for all."
        )
    return {request.pk: _answer(request, True if value is None else value) for request in meant}


def _has_ids(value: Mapping[Any, Any]) -> bool:
    return any(isinstance(key, str) and _ID.fullmatch(key) for key in value)


def _named(waiting: Sequence[ApprovalRequest], value: Mapping[Any, Any]) -> list[ApprovalRequest]:
    """Return the requests whose ids are the keys of `value`."""
    ids = {request.pk for request in waiting}
    for key in value:
        if key not in ids:
            raise Conflict(
                f"The request {key!r} is not pending. Pending: {_listed(waiting)}.",
                code="stale",
            )
    return [request for request in waiting if request.pk in value]


def _listed(waiting: Sequence[ApprovalRequest]) -> str:
    return ", ".join(f"{request.pk} ({request.tool})" for request in waiting) or "none"


def _answer(request: ApprovalRequest, value: Any) -> DecisionRequest:
    if isinstance(value, Mapping):
        return _edit(request, value)
    if value is True or value == APPROVE:
        return DecisionRequest(Decision.APPROVE, request.digest)
    if value is False or value == REJECT:
        return DecisionRequest(Decision.REJECT, request.digest)
    if not isinstance(value, str) or not value.strip() or value.strip().lower() in _ALMOST:
        raise InvalidRequest(f"{value!r} is not a decision. {_FORMS}")
    return DecisionRequest(Decision.REJECT, request.digest, reason=value)


def _edit(request: ApprovalRequest, changes: Mapping[Any, Any]) -> DecisionRequest:
    if not changes:
        raise InvalidRequest(f"An empty dictionary changes nothing. {_FORMS}")
    if not all(isinstance(name, str) for name in changes):
        raise InvalidRequest("The names of fields must be texts.")
    call, edited = request.tool_call, dict(changes)
    if call is not None and proposal_kind(request) is None:
        before = request.input if isinstance(request.input, dict) else {}
        spec = AgentSpec.model_validate(request.run.spec)
        edited = with_changes(spec, request.tool, before, changes, request.run)
    return DecisionRequest(Decision.EDIT, request.digest, input=edited)
