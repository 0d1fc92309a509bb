"""Options of an agent: its subagents."""

from __future__ import annotations

from pydantic import Field

from agents.kernel.options import AgentOptions
from agents.spec import SubagentSpec


class SubagentOptions(AgentOptions):
    """Options for `SubagentsMiddleware`."""

    title = "Subagents"
    listed = []

    general_subagent: bool = Field(
        default=True,
        description="It may delegate to the subagent general, which has all tools of the agent.",
    )
    background_subagents: bool = Field(
        default=False,
        description="It can also start subagents without waiting for them (spawn_subagent).",
    )
    max_concurrent_subagents: int = Field(
        default=5,
        ge=1,
        le=100,
        description="The maximum of subagents of one run that work in parallel. Others wait.",
    )
    subagent_depth: int = Field(
        default=1,
        ge=0,
        le=5,
        description="The levels of delegation. 0: it cannot delegate. 1: "
        "its subagents cannot delegate.",
    )


class DefinedSubagents(AgentOptions):
    """Options that the relation `subagents` writes. People do not edit them: not in `OPTIONS`."""

    subagents: tuple[SubagentSpec, ...] = ()


class WorksAlone(AgentOptions):
    """The definition of a subagent whose run a program starts without a parent."""

    works_as: SubagentSpec | None = None


OPTIONS = (SubagentOptions,)
