"""Requests of a run that has ended are cancelled."""

from __future__ import annotations

from agents.kernel.row_hooks import RowHooks
from agents.models import ApprovalRequest, Run
from agents.states import ApprovalStatus, RunStatus


class ApprovalRows(RowHooks):
    """Requests of a run that has ended are cancelled."""

    order = 200

    def ended(self, run: Run, *, wake: bool) -> None:
        if run.status == RunStatus.COMPLETED:
            return  # nothing was open
        ApprovalRequest.objects.filter(run=run, status=ApprovalStatus.PENDING).update(
            status=ApprovalStatus.CANCELLED
        )


ROW_HOOKS = [ApprovalRows]
