"""Budgets: limits of tokens and cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from agents.events.event import Event


@dataclass(frozen=True, kw_only=True)
class BudgetWarning(Event):
    """80 % of a limit is used. It is written once for each limit, by the run that reached it."""

    type: ClassVar[str] = "budget.warning"

    kind: str
    """`tokens` or `cost`."""
    used: int | str
    """Tokens, or US dollars as a decimal number."""
    limit: int | str
    """The limit, in the same unit."""
    scope: str
    """The scope of the limit: `run`, `day` or `month`."""
    allowance: int
    """The id of the allowance."""


EVENTS = [BudgetWarning]
