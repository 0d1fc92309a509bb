"""The row hooks of this app's own features, for `AgentsConfig.ready`."""

from __future__ import annotations

from agents.kernel.row_hooks import RowHooks, register
from agents.selectors.starters import StarterRows
from agents.services.approvals import ApprovalRows
from agents.services.budget_answers import BudgetRows
from agents.services.delegation import SubagentRows
from agents.services.run_ends import EndRows
from agents.services.usage_totals import UsageRows

ROW_HOOKS: tuple[type[RowHooks], ...] = (
    BudgetRows,
    ApprovalRows,
    SubagentRows,
    EndRows,
    UsageRows,
    StarterRows,
)


def register_row_hooks() -> None:
    """Register them. Each process does so once its apps are loaded."""
    for hooks in ROW_HOOKS:
        register(hooks)
