"""Version 5 of the AI SDK, which has no approvals: data parts, and decisions over REST."""

from __future__ import annotations

from agents.events.projections.ui_dialect import Approval, Chunk, approval_data, call_error


class Version5:
    """See `Dialect`."""

    stops_for_approvals = False

    def approval_requested(self, approval: Approval) -> list[Chunk]:
        return [approval_data(approval)]

    def approval_decided(self, approval: Approval) -> list[Chunk]:
        return [approval_data(approval)]

    def call_denied(self, call_id: str, reason: str, approval: Approval | None) -> list[Chunk]:
        return [call_error(call_id, reason)]
