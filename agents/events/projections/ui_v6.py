"""Version 6 of the AI SDK: the client gets approval requests and posts its answers."""

from __future__ import annotations

from agents.events.projections.ui_dialect import Approval, Chunk, call_error


class Version6:
    """See `Dialect`."""

    stops_for_approvals = True

    def approval_requested(self, approval: Approval) -> list[Chunk]:
        return [
            {
                "type": "tool-approval-request",
                "approvalId": approval.id,
                "toolCallId": approval.call_id,
            }
        ]

    def approval_decided(self, approval: Approval) -> list[Chunk]:
        return []  # the protocol has no chunk for it: the result contains the decision

    def call_denied(self, call_id: str, reason: str, approval: Approval | None) -> list[Chunk]:
        if approval is None:  # denied by the policy, without a request
            return [call_error(call_id, reason)]
        return [{"type": "tool-output-denied", "toolCallId": call_id}]
