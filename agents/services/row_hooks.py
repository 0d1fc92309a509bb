"""The row hooks of the features that are still part of this app."""

from __future__ import annotations

from agents.kernel.row_hooks import RowHooks
from agents.selectors.starters import StarterRows
from agents.services.approvals import ApprovalRows
from agents.services.delegation import SubagentRows
from agents.services.run_ends import EndRows
from agents.services.usage_totals import UsageRows

ROW_HOOKS: tuple[type[RowHooks], ...] = (
    ApprovalRows,
    SubagentRows,
    EndRows,
    UsageRows,
    StarterRows,
)
