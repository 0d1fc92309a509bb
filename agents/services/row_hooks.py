"""The row hooks of this app."""

from __future__ import annotations

from agents.kernel.row_hooks import RowHooks
from agents.selectors.starters import StarterRows
from agents.services.runs.delegation import SubagentRows
from agents.services.runs.ends import EndRows
from agents.services.runs.usage_totals import UsageRows

ROW_HOOKS: tuple[type[RowHooks], ...] = (
    SubagentRows,
    EndRows,
    UsageRows,
    StarterRows,
)
