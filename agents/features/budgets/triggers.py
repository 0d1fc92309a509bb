"""A trigger does not start a run if a budget of the run is used up."""

from __future__ import annotations

from agents.features.budgets.models import Budget
from agents.features.budgets.scope import spent_budget
from agents.models import Trigger
from agents.services.runs.trigger_rights import CannotStart


def check_budgets(trigger: Trigger) -> None:
    """Raise `CannotStart` if a budget of its runs is used up."""
    zone = trigger.thread.time_zone if trigger.thread is not None else ""
    spent = spent_budget(trigger.agent_id, trigger.owner_id, time_zone=zone, trigger=trigger.pk)
    if spent is not None:
        raise CannotStart(f"The budget of {spent.of} is used up for now.", code="budget_spent")


def delete_budgets(trigger_id: str) -> None:
    """Delete the budgets of a trigger that is being deleted."""
    Budget.objects.filter(trigger=trigger_id).delete()


START_CHECKS = [check_budgets]
BEFORE_DELETION = [delete_budgets]
