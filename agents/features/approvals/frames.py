"""Decisions on a run's socket."""

from __future__ import annotations

from typing import ClassVar, Literal

from django.contrib.auth.base_user import AbstractBaseUser
from pydantic import Field, model_validator

from agents.doors.websockets.frames import Frame, Json, Text
from agents.middleware.decisions import decide
from agents.models import Run, TokenScope
from agents.selectors.visible import approvals_for
from agents.services.approvals.decisions import DecisionRequest
from agents.services.errors import NotFound


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
            raise ValueError("only the decision `edit` accepts an input")
        return self

    def carry_out(self, run: Run, user: AbstractBaseUser) -> dict[str, str]:
        if not approvals_for(user).filter(pk=self.approval_id, run=run).exists():
            raise NotFound("This run has no approval request with this id that you can decide.")
        answer = DecisionRequest(
            decision=self.decision, digest=self.digest, input=self.input, reason=self.reason
        )
        decide(self.approval_id, answer, by=user)
        return {"approval_id": self.approval_id}


FRAMES = [DecideFrame]
