"""Whether a run that would begin now had anything left to spend."""

from __future__ import annotations

from agents.models import Allowance, Budget
from agents.services.budget_scope import Scope, budgets_of, window_name


def spent_budget(
    agent_id: str, owner_id: int, *, time_zone: str = "", trigger: str | None = None
) -> Budget | None:
    """A budget whose present window is used up, of those that such a run would count in.

    One query where there are no budgets. Nothing is reserved: a run that begins may still find
    nothing left, and then parks and asks.
    """
    scope = Scope((), agent_id, owner_id, time_zone, trigger)
    for budget in budgets_of(scope).select_related("agent", "user"):
        name = window_name(budget.period, time_zone)
        window = Allowance.objects.filter(budget=budget, window=name).first()
        if window is not None and _is_used_up(window):
            return budget
    return None


def _is_used_up(window: Allowance) -> bool:
    tokens, cost = window.token_limit, window.microusd_limit
    return (tokens is not None and window.used_tokens >= tokens) or (
        cost is not None and window.used_microusd >= cost
    )
