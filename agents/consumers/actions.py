"""What a frame does: the service that it stands for, on behalf of its sender."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser

from agents.consumers.frames import (
    CancelFrame,
    ClientFrame,
    DecideFrame,
    MemoryDecisionFrame,
    MessageFrame,
)
from agents.middleware.decisions import decide
from agents.models import ApprovalKind, Run, TokenScope
from agents.selectors.visible import approvals_for, watchable_runs_for
from agents.services.approvals import DecisionRequest
from agents.services.errors import Conflict, NotAllowed, NotFound
from agents.services.run_control import cancel_for
from agents.services.runs import RunRequest, create_run


def needed_scope(frame: ClientFrame) -> TokenScope:
    """What a token must be allowed to do for this frame."""
    decides = isinstance(frame, DecideFrame | MemoryDecisionFrame)
    return TokenScope.APPROVE if decides else TokenScope.RUN


def carry_out(run_id: str, frame: ClientFrame, user: AbstractBaseUser) -> dict[str, str]:
    """Do what `frame` asks and return what the answer tells. Raises the services' errors."""
    run = watchable_runs_for(user).select_related("thread__agent").filter(pk=run_id).first()
    if run is None:
        raise NotFound(f"There is no run {run_id!r} that you may see.")
    match frame:
        case DecideFrame():
            return _decide(run, frame, user)
        case MemoryDecisionFrame():
            return _decide_memory(run, frame, user)
        case CancelFrame():
            return _cancel(run, frame, user)
        case MessageFrame():
            return _send_message(run, frame, user)


def _decide(run: Run, frame: DecideFrame, user: AbstractBaseUser) -> dict[str, str]:
    if not approvals_for(user).filter(pk=frame.approval_id, run=run).exists():
        raise NotFound("This run has no such request that you may decide.")
    answer = DecisionRequest(
        decision=frame.decision, digest=frame.digest, input=frame.input, reason=frame.reason
    )
    decide(frame.approval_id, answer, by=user)
    return {"approval_id": frame.approval_id}


def _decide_memory(run: Run, frame: MemoryDecisionFrame, user: AbstractBaseUser) -> dict[str, str]:
    # Of this kind only: whoever answers this frame has seen a file, not a command.
    asked = approvals_for(user).filter(pk=frame.request_id, run=run, kind=ApprovalKind.MEMORY)
    if not asked.exists():
        raise NotFound("This run has no such request about the memory that you may decide.")
    edited = None if frame.edited_content is None else {"content": frame.edited_content}
    decide(frame.request_id, DecisionRequest(frame.decision, input=edited), by=user)
    return {"request_id": frame.request_id}


def _cancel(run: Run, frame: CancelFrame, user: AbstractBaseUser) -> dict[str, str]:
    cancel_for(user, run, reason=frame.reason)
    return {}


def _send_message(run: Run, frame: MessageFrame, user: AbstractBaseUser) -> dict[str, str]:
    if run.owner_id != user.pk:
        raise NotAllowed("Only its owner may go on with a thread.")
    if run.parent_id is not None:
        raise Conflict(
            "A subagent answers to its agent: write to the run that started it.", code="subagent"
        )
    request = RunRequest(
        agent=run.thread.agent.slug,
        message=frame.text,
        thread=run.thread_id,
        queue=True,
        source="web",
    )
    return {"run_id": create_run(request, owner=user, idempotency_key=frame.key).run.id}
