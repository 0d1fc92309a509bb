"""For other features: the budgets of their triggers."""

from __future__ import annotations

from agents.features.budgets.actions import delete_budget, save_budget
from agents.features.budgets.models import Budget, Period

__all__ = ["Budget", "Period", "delete_budget", "save_budget"]
