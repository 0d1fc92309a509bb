"""Limits of a Python program's agent."""

from __future__ import annotations

from agents.kernel.programs import ProgramOptions


class BudgetArguments(ProgramOptions):
    names = ("max_tokens", "max_cost")


PROGRAM_OPTIONS = (BudgetArguments(),)
