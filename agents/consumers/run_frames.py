"""The frames that every run accepts: a message, a decision and a cancellation."""

from __future__ import annotations

from typing import ClassVar, Literal

from django.contrib.auth.base_user import AbstractBaseUser
from pydantic import Field, model_validator

from agents.doors.websockets.frames import Frame, Json, Text
from agents.middleware.decisions import decide
from agents.models import Run, TokenScope
from agents.selectors.visible import approvals_for
from agents.services.approvals.decisions import DecisionRequest
from agents.services.errors import Conflict, NotAllowed, NotFound
from agents.services.runs.control import cancel_for
from agents.services.runs.start import RunRequest, create_run


class MessageFrame(Frame):
    """A message to the run's thread. Messages with the same `key` count once."""

    type: Literal["message"]
    text: Text
    key: Text | None = Field(None, min_length=1, max_length=200)

    def carry_out(self, run: Run, user: AbstractBaseUser) -> dict[str, str]:
        if run.owner_id != user.pk:
            raise NotAllowed("Only its owner may go on with a thread.")
        if run.parent_id is not None:
            raise Conflict(
                "A subagent answers to its agent: write to the run that started it.",
                code="subagent",
            )
        request = RunRequest(
            agent=run.thread.agent.slug,
            message=self.text,
            thread=run.thread_id,
            queue=True,
            source="web",
        )
        return {"run_id": create_run(request, owner=user, idempotency_key=self.key).run.id}


class DecideFrame(Frame):
    """A decision on an approval request, bound to the digest of the displayed request."""

    type: Literal["decide"]
    scope: ClassVar = TokenScope.APPROVE
    approval_id: Text = Field(max_length=64)
    digest: Text = Field(max_length=64)
    decision: Text = Field(max_length=20)
    input: Json | None = None
    reason: Text = ""

    @model_validator(mode="after")
    def _runs_what_was_shown(self) -> DecideFrame:
        if self.input is not None and self.decision != "edit":
            raise ValueError("only the decision `edit` takes an input")
        return self

    def carry_out(self, run: Run, user: AbstractBaseUser) -> dict[str, str]:
        if not approvals_for(user).filter(pk=self.approval_id, run=run).exists():
            raise NotFound("This run has no such request that you may decide.")
        answer = DecisionRequest(
            decision=self.decision, digest=self.digest, input=self.input, reason=self.reason
        )
        decide(self.approval_id, answer, by=user)
        return {"approval_id": self.approval_id}


class CancelFrame(Frame):
    """A request to cancel the run."""

    type: Literal["cancel"]
    reason: Text = Field("", max_length=1000)

    def carry_out(self, run: Run, user: AbstractBaseUser) -> dict[str, str]:
        cancel_for(user, run, reason=self.reason)
        return {}


FRAMES = (MessageFrame, DecideFrame, CancelFrame)
