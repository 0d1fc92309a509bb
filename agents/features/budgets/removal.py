"""Work of `vel features remove` before it removes the tables of budgets."""

from __future__ import annotations

from django.db import transaction

from agents.features.budgets.models import BUDGET
from agents.models import ApprovalRequest, Run
from agents.services.runs.wake import lock_run, wake_run
from agents.states import ApprovalStatus, RunStatus


def wake_waiting_runs() -> None:
    """Resume runs that wait for a budget, because people cannot give more afterwards.

    Those whose agent has a limit end with `feature_missing`.
    """
    waiting = Run.objects.filter(status=RunStatus.WAITING, wait_reason=BUDGET)
    for run_id in waiting.order_by("depth", "pk").values_list("pk", flat=True):
        with transaction.atomic():
            run = lock_run(run_id)
            if (run.status, run.wait_reason) == (RunStatus.WAITING, BUDGET):
                wake_run(run, "budgets are being removed")
    ApprovalRequest.objects.filter(kind=BUDGET, status=ApprovalStatus.PENDING).update(
        status=ApprovalStatus.CANCELLED
    )


BEFORE_REMOVAL = [wake_waiting_runs]
