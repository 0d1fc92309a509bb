"""Approvals in the versions of the AI SDK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

Chunk = dict[str, Any]


class Dialect(Protocol):
    """The differences between the versions."""

    stops_for_approvals: bool
    """Whether a response ends with a request for approval, which the client answers."""

    def approval_requested(self, approval: Approval) -> list[Chunk]: ...

    def approval_decided(self, approval: Approval) -> list[Chunk]: ...

    def call_denied(self, call_id: str, reason: str, approval: Approval | None) -> list[Chunk]: ...


@dataclass(slots=True)
class Approval:
    """A request for approval. `data` is that of its event."""

    run_id: str
    data: dict[str, Any]
    of_message: bool
    """Whether it is about a call of the message, not about a budget or a subagent's call."""
    decision: str = ""
    reason: str = ""
    by: str = ""

    @property
    def id(self) -> str:
        return str(self.data["approval_id"])

    @property
    def call_id(self) -> str:
        return str(self.data["call_id"])

    @property
    def approved(self) -> bool:
        return self.decision in ("approve", "edit", "respond")


def call_error(call_id: str, text: str) -> Chunk:
    return {"type": "tool-output-error", "toolCallId": call_id, "errorText": text}


def approval_data(approval: Approval) -> Chunk:
    """Return a request as a data part, for decisions over REST.

    A later part replaces it by its id.
    """
    data = approval.data
    told = {
        "approvalId": approval.id,
        "runId": approval.run_id,
        "toolCallId": data["call_id"],
        "toolName": data["tool"],
        "input": data["input"],
        "kind": data["kind"],
        "prompt": data["prompt"],
        "digest": data["digest"],
        "allowedDecisions": data["allowed_decisions"],
        "expiresAt": data["expires_at"],
        "decision": approval.decision,
        "reason": approval.reason,
        "by": approval.by,
    }
    known = {name: value for name, value in told.items() if value is not None}
    return {"type": "data-tool-approval", "id": approval.id, "data": known}
