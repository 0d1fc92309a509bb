"""Budgets of runs that are released, resumed or ended, in every process."""

from __future__ import annotations

from agents.features.budgets.answers import stop_waiting
from agents.features.budgets.models import BUDGET, RunBudget
from agents.features.budgets.reservations import release
from agents.kernel.row_hooks import RowHooks
from agents.models import Run, RunClock


class BudgetRows(RowHooks):
    """Release reservations and withdraw requests of runs that end or lose their driver."""

    order = 100
    waits_for = BUDGET

    def released(self, run_id: str, clock: RunClock) -> None:
        release(run_id)

    def resumed(self, run: Run, *, had_ended: bool) -> None:
        """Forget a refusal: the run asks again."""
        RunClock.objects.select_for_update(no_key=True).get(run=run)
        RunBudget.objects.filter(run=run).update(refusal_code="", refusal="")

    def stop_waiting(self, run: Run) -> None:
        stop_waiting(run)

    def time_over(self, run: Run) -> str:
        stop_waiting(run)
        return "a new window has begun"


ROW_HOOKS = [BudgetRows]
