"""Warnings about budgets as lines of the terminal."""

from __future__ import annotations

from typing import Any, Protocol

from agents.features.budgets.events import BudgetWarning


class Lines(Protocol):
    def note(self, text: str, style: str = "") -> None:
        """Print a line."""


def budget_warning(lines: Lines, data: dict[str, Any]) -> None:
    used, limit = (
        f"${amount}" if data["kind"] == "cost" else f"{amount:,} tokens"
        for amount in (data["used"], data["limit"])
    )
    lines.note(f"  nearly used up: {used} of {limit} (limit of the {data['scope']})", "yellow")


def warning_in_tree(data: dict[str, Any]) -> list[tuple[str, str]]:
    return [(f"{data['kind']}: {data['used']} of {data['limit']} used", "yellow")]


EVENT_LINES = [(BudgetWarning.type, budget_warning)]
TREE_LINES = [(BudgetWarning.type, warning_in_tree)]
