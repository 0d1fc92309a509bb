"""Requests for which a run waited are cancelled when it has ended."""

from __future__ import annotations

from agents.kernel.proposals import beside_requests
from agents.kernel.row_hooks import RowHooks
from agents.models import ApprovalRequest, Run
from agents.states import ApprovalStatus, RunStatus


class ApprovalRows(RowHooks):
    """Requests of a run that has ended are cancelled."""

    order = 200

    def ended(self, run: Run, *, wake: bool) -> None:
        if run.status == RunStatus.COMPLETED:
            return  # nothing was open
        pending = ApprovalRequest.objects.filter(run=run, status=ApprovalStatus.PENDING)
        pending.exclude(beside_requests()).update(status=ApprovalStatus.CANCELLED)


ROW_HOOKS = [ApprovalRows]
