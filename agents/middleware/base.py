"""The parts of a capability: tools, their results, and a segment of the prompt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar, get_args

from pydantic import BaseModel

from agents.kernel import middleware
from agents.kernel.features import AGENTS
from agents.kernel.proposals import Proposed
from agents.kernel.tool_calls import ToolResult as ToolResult
from agents.middleware.context import Preview, SubagentReport, ToolContext
from agents.models import Effect
from agents.spec import AgentSpec

Input = TypeVar("Input", bound=BaseModel)
T = TypeVar("T")


@dataclass(slots=True)
class WaitForRuns:
    """Returned instead of a result: the call waits until these runs end, or for `seconds`.

    The run is parked. Then the tool is called again, possibly by another process, and must return
    the same runs; `answer` makes the result from their reports, in the same order.
    """

    run_ids: Sequence[str]
    answer: Callable[[Sequence[SubagentReport]], ToolResult]
    seconds: float | None = None
    """Seconds since the start of the call."""


@dataclass(frozen=True, slots=True)
class Tool(Generic[Input]):
    """One tool, for the model and for the engine.

    `description` is one or two sentences. `effect` decides what happens after a crash and which
    calls run in parallel. `time_limit` is the default in seconds; None means that only the engine's
    limit applies. Aliases in `input_model` are accepted and not advertised.
    """

    name: str
    description: str
    input_model: type[Input]
    run: Callable[[ToolContext, Input], Awaitable[ToolResult | WaitForRuns]]
    effect: Effect
    time_limit: float = 30.0
    asks: bool | None = None
    """Whether a call without a matching policy rule requires approval. None: by its effect."""
    has_timeout_field: bool = True
    """Whether a field `timeout` of its input, and the agent's own limit, set the time of a call."""
    aliases: tuple[str, ...] = ()
    """Other names that are accepted from a model. They are not advertised."""
    runs_alone: bool = False
    """Whether no other call of the turn runs in parallel, although its effect is READ: it changes
    rows of the run that other calls use, so the order of the calls matters.
    """
    is_whole: bool = False
    """Whether a result must reach the model complete. The tool limits it itself."""
    outlives_driver: bool = False
    """Whether another driver continues a started call, as the same attempt."""
    variant: Callable[[Input], Tool[Any] | None] | None = None
    """Returns the tool with the same name and input model, but a stronger effect, for an input.

    None: this tool.
    """
    trial: Callable[[ToolContext, Input], Awaitable[Preview | ToolResult]] | None = None
    """Returns a preview of a call's changes without making them, or an error result.

    The call always requires approval, which applies to the preview. Before the call is made, it is
    tried again; if the preview has changed, it requires a new approval.
    """
    leaves_machine: bool = False
    """Whether its input is sent to another machine, although its effect is READ."""
    proposes: Callable[[Input], Proposed | None] | None = None
    """Returns the change that an input proposes, or None.

    A call with a proposal always requires approval, and the decision makes the change: `run` is not
    called.
    """

    describe: Callable[[ToolContext, Input], Awaitable[str]] | None = None
    """Returns a sentence about an input for the person who decides on the call, such as the name
    that belongs to an id; empty for none. It only reads. Without an answer, the request has none.
    """

    def proposed(self, given: Input) -> Proposed | None:
        """Return the change that this input proposes, or None."""
        return None if self.proposes is None else self.proposes(given)


_COMMANDS = frozenset({"execute", "execute_python", "execute_in_sandbox"})
_WRITING = _COMMANDS | {"write_file", "edit_file"}


@dataclass(frozen=True, slots=True)
class PromptContext:
    """The data for a prompt segment. It does not change within an epoch."""

    spec: AgentSpec
    tool_names: frozenset[str]
    now: datetime
    parts: Mapping[str, Any] = field(default_factory=dict)
    """The content of features' parts, by their labels: see `RunPart.prompt_content`."""
    in_own_directory: bool = False
    """Whether /sandbox/workspace is a directory of the caller, which subagents share."""

    @property
    def changes_files(self) -> bool:
        """Return whether one of the tools can change files."""
        return not self.spec.read_only and not _WRITING.isdisjoint(self.tool_names)

    @property
    def runs_commands(self) -> bool:
        """Return whether one of the tools runs commands."""
        return not _COMMANDS.isdisjoint(self.tool_names)


_ALMOST_EVERYTHING = tuple(
    AgentSpec(
        name="",
        slug="",
        provider="",
        model="",
        profile=profile,
        integrations=(AGENTS,),
    )
    for profile in get_args(AgentSpec.model_fields["profile"].annotation)
)


class Middleware(middleware.Middleware):
    """A capability. Subclass it, give it a `name`, and override methods.

    It adds tools, a segment of the prompt, and the hooks of `agents.kernel.middleware`. An instance
    holds configuration only and is shared by all runs.
    """

    profiles: frozenset[str] = frozenset({"full"})
    """The tool profiles that include it."""
    tool_prefix: str = ""
    """The prefix of its tools' names if they depend on rows. Other tools must not use it."""
    tool_source: str = ""
    """The source of these tools, for an error message."""

    def tools(self, spec: AgentSpec) -> Sequence[Tool[Any]]:
        """Return the tools for an agent. Tools without their configuration are left out."""
        return ()

    def every_tool(self) -> Sequence[Tool[Any]]:
        """Return each tool that some agent can have, for lists and checks.

        Override it if `tools` depends on anything but the profile and the builder of agents.
        """
        return [tool for spec in _ALMOST_EVERYTHING for tool in self.tools(spec)]

    def wanted_by(self, spec: AgentSpec) -> str:
        """Return the option of `spec` that asks for its tools; empty if none does.

        The definition is refused if its profile does not include the middleware.
        """
        return ""

    def prompt(self, context: PromptContext) -> str:
        """Return its segment of the system prompt; empty for none."""
        return ""


def error(message: str, code: str = "tool_error") -> ToolResult:
    """Return an error result. The message has the reason and an alternative, for the model."""
    return ToolResult(message, is_error=True, code=code)
