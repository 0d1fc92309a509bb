"""What a capability is made of: tools, what they give back, and a segment of the prompt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar, get_args

from pydantic import BaseModel

from agents.kernel import middleware
from agents.kernel.integrations import AGENTS
from agents.kernel.proposals import Proposed
from agents.kernel.tool_calls import ToolResult as ToolResult
from agents.middleware.context import Preview, SubagentReport, ToolContext
from agents.models import Effect
from agents.spec import AgentSpec

Input = TypeVar("Input", bound=BaseModel)
T = TypeVar("T")


@dataclass(slots=True)
class WaitForRuns:
    """Instead of a result: the call goes on when these runs have ended, or after `seconds`.

    The run is parked meanwhile. The tool is then called again, perhaps by another process, and
    must come to the same runs; `answer` makes the result of their reports, in the same order.
    """

    run_ids: Sequence[str]
    answer: Callable[[Sequence[SubagentReport]], ToolResult]
    seconds: float | None = None
    """From the beginning of the call."""


@dataclass(frozen=True, slots=True)
class Tool(Generic[Input]):
    """One tool as the model sees it and as the engine runs it.

    `description` is one or two sentences. `effect` decides what happens after a crash and which
    calls run side by side. `time_limit` is the default in seconds; None means that the engine's
    cap alone holds. Aliases in `input_model` are accepted and not advertised.
    """

    name: str
    description: str
    input_model: type[Input]
    run: Callable[[ToolContext, Input], Awaitable[ToolResult | WaitForRuns]]
    effect: Effect
    time_limit: float = 30.0
    asks: bool | None = None
    """Whether a person is asked where the agent's policy says nothing. None: by its effect."""
    has_timeout_field: bool = True
    """Whether a field `timeout` of its input, and the agent's own limit, set the time of a call."""
    aliases: tuple[str, ...] = ()
    """Other names by which a model may call it. They are not advertised."""
    runs_alone: bool = False
    """Whether no other call of the turn runs beside it, although its effect is READ: it changes
    rows of the run on which other calls depend, so the order of the calls matters."""
    is_whole: bool = False
    """Whether the model needs all of a result, which has a limit of its own."""
    outlives_driver: bool = False
    """A call that has started goes on with another driver, as the same attempt."""
    variant: Callable[[Input], Tool[Any] | None] | None = None
    """The tool of the same name and input model that an input means, where that is another one:
    one whose effect is graver. None: this one."""
    trial: Callable[[ToolContext, Input], Awaitable[Preview | ToolResult]] | None = None
    """Shows what an input would do, and does nothing; a result says why it cannot be made.

    Such a call waits for a person whatever the policy says, is bound to what was shown, and is
    tried again before it is made: if anything else is shown then, it is asked anew.
    """
    leaves_machine: bool = False
    """Whether its input gets to another machine, although its effect is READ."""
    proposes: Callable[[Input], Proposed | None] | None = None
    """What an input proposes; None if it proposes nothing.

    Such a call always waits for a person, and the decision makes the change: `run` is not called.
    """

    def proposed(self, given: Input) -> Proposed | None:
        """Return what this input proposes."""
        return None if self.proposes is None else self.proposes(given)


@dataclass(frozen=True, slots=True)
class PromptContext:
    """What a prompt segment may depend on; all of it is fixed when the epoch begins."""

    spec: AgentSpec
    tool_names: frozenset[str]
    now: datetime
    parts: Mapping[str, Any] = field(default_factory=dict)
    """The content of the parts of features, by their labels: see `RunPart.prompt_content`."""
    in_own_directory: bool = False
    """Whether /sandbox/workspace is a directory of the caller's, which subagents work in too."""


_ALMOST_EVERYTHING = tuple(
    AgentSpec(
        name="",
        slug="",
        provider="",
        model="",
        profile=profile,
        integrations=(AGENTS,),
        background_subagents=True,
    )
    for profile in get_args(AgentSpec.model_fields["profile"].annotation)
)


class Middleware(middleware.Middleware):
    """A capability. Subclass it, give it a `name`, and override what it adds.

    It adds tools, a segment of the prompt, and the hooks of `agents.kernel.middleware`. An
    instance holds configuration only and is shared by all runs.
    """

    profiles: frozenset[str] = frozenset({"full"})
    """The tool profiles that it is part of."""
    tool_prefix: str = ""
    """How the names of its tools begin if they depend on rows. No other tool begins like this."""
    tool_source: str = ""
    """What these tools belong to, for an error message."""

    def tools(self, spec: AgentSpec) -> Sequence[Tool[Any]]:
        """Its tools for an agent. What is not configured is not offered."""
        return ()

    def every_tool(self) -> Sequence[Tool[Any]]:
        """Return each tool that some agent can have, for lists and checks.

        Override it if `tools` depends on anything but the profile, the builder of agents and
        background subagents.
        """
        return [tool for spec in _ALMOST_EVERYTHING for tool in self.tools(spec)]

    def prompt(self, context: PromptContext) -> str:
        """Its segment of the system prompt; empty for none."""
        return ""


def error(message: str, code: str = "tool_error") -> ToolResult:
    """A result that tells the model what went wrong and what to do instead."""
    return ToolResult(message, is_error=True, code=code)
