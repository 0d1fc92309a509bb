"""Version 7 of the AI SDK: as version 6, with chunks for decisions."""

from __future__ import annotations

from agents.events.projections.ui_dialect import Approval, Chunk
from agents.events.projections.ui_v6 import Version6


class Version7(Version6):
    """See `Dialect`."""

    def approval_decided(self, approval: Approval) -> list[Chunk]:
        chunk: Chunk = {
            "type": "tool-approval-response",
            "approvalId": approval.id,
            "approved": approval.approved,
        }
        return [{**chunk, "reason": approval.reason} if approval.reason else chunk]
