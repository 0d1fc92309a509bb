"""Requests to change the memory, as frames that a page can show without knowledge of events.

A `MemoryDecisionFrame` answers a request. Each frame to the client is a projection of the preceding
event and of the rows of its request, and has the event's `seq`:

- after `approval.requested`: `memory_edit_request`, while the request is pending. If the file has
  changed, a new request has another request_id and the same tool_call_id.
- after the decision, the expiry or the end of the run: `memory_edit_complete`. `success` is true if
  the memory was changed.

A client that connects again first gets the pending requests again. If the last event that it has
ended a request, the client gets that `memory_edit_complete` again, too.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar, Literal

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import QuerySet
from pydantic import Field, model_validator

from agents.doors.websockets.frames import AfterEvents, Frame, Text
from agents.events.append import dump
from agents.events.catalogue.approvals import ApprovalDecided, ApprovalExpired, ApprovalRequested
from agents.events.catalogue.runs import RunCancelled, RunFailed
from agents.events.read import stored_events
from agents.events.stored import StoredEvent
from agents.middleware.decisions import decide
from agents.models import ApprovalRequest, Run, RunEvent, TokenScope
from agents.selectors.visible import Person, approvals_for
from agents.services.approvals.decisions import DecisionRequest
from agents.services.errors import NotFound
from agents.states import ApprovalStatus, Decision
from memory.models import KIND
from memory.queries.requests import shown_edit

_ENDS_ONE = frozenset({ApprovalDecided.type, ApprovalExpired.type})
_ENDS_RUN = frozenset({RunCancelled.type, RunFailed.type})
_BEGINS = ApprovalRequested.type


class MemoryDecisionFrame(Frame):
    """An answer to a `memory_edit_request`. The request's id binds it to the shown content."""

    type: Literal["memory_edit_decision"]
    scope: ClassVar = TokenScope.APPROVE
    request_id: Text = Field(max_length=64)
    decision: Literal["approve", "reject", "edit"]
    edited_content: Text | None = None
    reason: Text = ""

    @model_validator(mode="after")
    def _writes_what_was_shown(self) -> MemoryDecisionFrame:
        if (self.edited_content is not None) != (self.decision == "edit"):
            raise ValueError("only the decision `edit` takes edited_content")
        return self

    def carry_out(self, run: Run, user: AbstractBaseUser) -> dict[str, str]:
        # Only requests of this kind: the sender of this frame has seen a file, not a command.
        asked = approvals_for(user).filter(pk=self.request_id, run=run, kind=KIND)
        if not asked.exists():
            raise NotFound("This run has no such memory request that you may decide.")
        edited = None if self.edited_content is None else {"content": self.edited_content}
        answer = DecisionRequest(self.decision, input=edited, reason=self.reason)
        decide(self.request_id, answer, by=user)
        return {"request_id": self.request_id}


def frames_after(event: StoredEvent, user: Person) -> list[str]:
    """Return the frames that follow `event` on the socket of `user`, as JSON texts.

    Requests that `user` may not see make no frames.
    """
    requests = _requests_of(event.run_id, user)
    if event.type in _ENDS_RUN:
        ended = requests.filter(status=ApprovalStatus.CANCELLED).order_by("created_at", "pk")
        return [_complete(request, event.seq) for request in ended]
    request = requests.filter(pk=json.loads(event.data_json).get("approval_id")).first()
    if request is None:
        return []
    if event.type != _BEGINS:
        return [_complete(request, event.seq)]
    return [_request(request, event.seq)] if request.status == ApprovalStatus.PENDING else []


def frames_again(run_id: str, after: int, user: Person) -> list[str]:
    """Return the frames for a client that connects again and has the events up to `after`.

    They are the requests of these events that are still pending. If the event with the `seq`
    `after` ended a request, its `memory_edit_complete` is also among them.
    """
    pending = _requests_of(run_id, user).filter(status=ApprovalStatus.PENDING)
    waiting = {request.pk: request for request in pending}
    frames = []
    if waiting:
        events = RunEvent.objects.filter(run=run_id, type=_BEGINS, seq__lte=after).order_by("seq")
        for seq, data in events.values_list("seq", "data"):
            if request := waiting.get(json.loads(data)["approval_id"]):
                frames.append(_request(request, seq))
    ends = RunEvent.objects.filter(run=run_id, seq=after, type__in=_ENDS_ONE | _ENDS_RUN)
    rows = ends.values_list("seq", "type", "data", "created_at")
    for event in stored_events(run_id, rows):
        frames += frames_after(event, user)
    return frames


def _requests_of(run_id: str, user: Person) -> QuerySet[ApprovalRequest]:
    return (
        approvals_for(user)
        .filter(run=run_id, kind=KIND, memory_edit__isnull=False)
        .select_related("memory_edit", "tool_call")
    )


def _request(request: ApprovalRequest, seq: int) -> str:
    return _frame(
        "memory_edit_request",
        request,
        seq,
        tool_call_id=request.tool_call.call_id if request.tool_call else None,
        **shown_edit(request.memory_edit),
    )


def _complete(request: ApprovalRequest, seq: int) -> str:
    success = request.status == ApprovalStatus.DECIDED and request.decision in (
        Decision.APPROVE,
        Decision.EDIT,
    )
    path = request.memory_edit.path
    return _frame("memory_edit_complete", request, seq, success=success, path=path)


def _frame(kind: str, request: ApprovalRequest, seq: int, **content: Any) -> str:
    return dump({"type": kind, "seq": seq, "request_id": request.pk, **content})


FRAMES = [MemoryDecisionFrame]
AFTER_EVENTS = [
    AfterEvents(frozenset({_BEGINS, *_ENDS_ONE, *_ENDS_RUN}), frames_after, frames_again)
]
