"""What a run needs to know of its agent: the frozen content of an `AgentVersion`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

DecisionName = Literal["approve", "edit", "reject", "respond"]


class InterruptRule(BaseModel):
    """How one tool asks a person first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    allowed_decisions: tuple[DecisionName, ...] = ("approve", "edit", "reject", "respond")


class AgentSpec(BaseModel):
    """An agent as a run pins it. Times are seconds, cost is US dollars; None means no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    slug: str
    system_prompt: str = ""
    provider: str
    model: str
    max_output_tokens: int = 16_000
    thinking: Literal["", "adaptive", "disabled"] = ""
    effort: str = ""
    profile: Literal["full", "sandbox_only"] = "full"
    tools: tuple[str, ...] | None = None
    interrupt_on: dict[str, bool | InterruptRule] = Field(default_factory=dict)
    sandbox: bool = True
    network: Literal["none", "allowlist", "full"] = "none"
    allowed_hosts: tuple[str, ...] = ()
    toolbox: str = ""
    command_timeout: int | None = None
    max_turns: int = 500
    max_tokens: int | None = None
    max_cost: float | None = None
    max_seconds: int | None = None
