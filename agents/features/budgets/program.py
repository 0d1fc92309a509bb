"""Limits of a Python program's agent."""

from __future__ import annotations

from agents.features.budgets.options import BudgetOptions
from agents.kernel.programs import OptionArguments

PROGRAM_OPTIONS = (OptionArguments(BudgetOptions, "max_tokens", "max_cost"),)
