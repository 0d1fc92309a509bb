"""Options of an agent: the limits of tokens and cost of each run."""

from __future__ import annotations

from pydantic import Field

from agents.kernel.options import AgentOptions
from agents.spec import Cost, Tokens


class BudgetOptions(AgentOptions):
    """Options for `Budgets`."""

    title = "Limits of a run"
    listed = ["max_tokens", "max_cost"]

    max_tokens: Tokens | None = Field(
        default=None, description="All tokens of one run. Empty: no limit."
    )
    max_cost: Cost | None = Field(default=None, description="US dollars a run. Empty: no limit.")

    def needed_middleware(self) -> dict[str, str]:
        limits = [name for name in ("max_tokens", "max_cost") if getattr(self, name) is not None]
        return {"budgets": limits[-1]} if limits else {}


OPTIONS = (BudgetOptions,)
