"""Asking a person, and taking the answer: bound to a digest, decided once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.utils import timezone

from agents.events.append import PREVIEW_BYTES, EventDraft, append_events, dump
from agents.models import ApprovalRequest, ToolCall
from agents.selectors.visible import approvals_for
from agents.services.errors import Conflict, InvalidRequest, NotFound
from agents.services.wake import lock_run, wake_run
from agents.states import (
    APPROVAL_TRANSITIONS,
    TOOL_CALL_TRANSITIONS,
    ApprovalStatus,
    Decision,
    RunStatus,
    ToolCallStatus,
    WaitReason,
    check_transition,
)


@dataclass(frozen=True)
class DecisionRequest:
    """A person's answer. `digest` names what the person saw.

    None is for doors that know requests by id only: an id names one digest for ever.
    `input` goes with `edit`; `reason` is told to the model on `reject` and is the tool's result
    on `respond`.
    """

    decision: str
    digest: str | None = None
    input: dict[str, Any] | None = None
    reason: str = ""


def digest_of(tool: str, tool_input: dict[str, Any], workspace_generation: int) -> str:
    """What a decision is bound to: the call, its input, and the workspace it would meet."""
    return hashlib.sha256(dump([tool, tool_input, workspace_generation]).encode()).hexdigest()


@transaction.atomic
def decide_approval(
    request_id: str, answer: DecisionRequest, *, by: AbstractBaseUser
) -> ApprovalRequest:
    """Record a decision and, when it was the last one awaited, let the run go on.

    Raises `NotFound` (no such request that `by` may decide), `Conflict` (decided already, ended,
    expired, or the digest is not what is asked), `InvalidRequest` (not an allowed decision, an
    edit without input, a response without text). Nothing is half-done: it is one transaction.
    """
    request = approvals_for(by).filter(pk=request_id).first()
    if request is None:
        raise NotFound(f"There is no request {request_id!r} that you may decide.")
    run = lock_run(request.run_id)
    request = ApprovalRequest.objects.select_for_update().get(pk=request_id)
    check_decision(request, answer)
    if run.status != RunStatus.WAITING:
        raise Conflict(f"The run is {run.status}: there is nothing to decide.", code="stale")
    request.status = ApprovalStatus.DECIDED
    request.decision = answer.decision
    request.edited_input = answer.input
    request.reason = answer.reason
    request.decided_by_id = by.pk
    request.decided_at = timezone.now()
    request.save()
    call = request.tool_call
    decided: EventDraft = (
        "approval.decided",
        {
            "approval_id": request.id,
            "call_id": call.call_id if call else None,
            "decision": answer.decision,
            "reason": answer.reason,
            "by": by.get_username(),
        },
    )
    drafts = [decided]
    if call is not None:
        _apply_to_call(call, answer)
        if call.status == ToolCallStatus.REJECTED:
            drafts.append(("tool.denied", {"call_id": call.call_id, "reason": answer.reason}))
        elif call.status == ToolCallStatus.ANSWERED:
            shown = answer.reason[:PREVIEW_BYTES]
            drafts.append(("tool.completed", {"call_id": call.call_id, "output": shown}))
    append_events(run.id, drafts)
    waiting = ApprovalRequest.objects.filter(run=run, status=ApprovalStatus.PENDING).exists()
    if not waiting and run.wait_reason == WaitReason.APPROVAL:
        wake_run(run, "approvals decided")
    return request


def check_decision(request: ApprovalRequest, answer: DecisionRequest) -> None:
    """Refuse what does not fit the request as it now is."""
    if answer.digest is not None and answer.digest != request.digest:
        raise Conflict("This is not what is asked any more: look at it again.", code="stale")
    if request.status != ApprovalStatus.PENDING:
        raise Conflict(f"The request is {request.status} already.", code="stale")
    if request.expires_at is not None and request.expires_at <= timezone.now():
        raise Conflict("The request has expired.", code="expired")
    if answer.decision not in request.allowed_decisions:
        allowed = ", ".join(request.allowed_decisions)
        raise InvalidRequest(f"{answer.decision!r} is not one of the decisions here: {allowed}.")
    if answer.decision != Decision.EDIT and answer.input is not None:
        # What runs on an approval is what was shown, and nothing that came with the answer.
        raise InvalidRequest("`input` goes with the decision `edit` only.")
    if answer.decision == Decision.EDIT and not isinstance(answer.input, dict):
        raise InvalidRequest("An edit needs `input`: the whole input that should run instead.")
    if answer.decision == Decision.RESPOND and not answer.reason.strip():
        raise InvalidRequest("An answer needs `reason`: the text that the tool's result will be.")
    check_transition(APPROVAL_TRANSITIONS, request.status, ApprovalStatus.DECIDED)


def _apply_to_call(call: ToolCall, answer: DecisionRequest) -> None:
    if answer.decision in (Decision.APPROVE, Decision.EDIT):
        after = ToolCallStatus.APPROVED
        if answer.decision == Decision.EDIT:
            call.edited_input = dump(answer.input)
    else:
        rejected = answer.decision == Decision.REJECT
        after = ToolCallStatus.REJECTED if rejected else ToolCallStatus.ANSWERED
        call.is_error = rejected
        call.code = "rejected" if rejected else ""
        call.result = dump(_rejection(answer.reason) if rejected else answer.reason)
        call.finished_at = timezone.now()
    check_transition(TOOL_CALL_TRANSITIONS, call.status, after)
    call.status = after
    call.save()


def _rejection(reason: str) -> str:
    said = f" Reason: {reason}" if reason.strip() else ""
    return f"A person rejected this call; it was not made.{said}"
