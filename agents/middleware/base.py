"""Base classes of a middleware: tools, their results, and a segment of the prompt."""

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
    """Result of a tool that waits until these runs end, or for `seconds`.

    The run is parked. Then the tool is called again, possibly by another process, and must return
    the same runs; `answer` makes the call's result from their reports, in the same order.
    """

    run_ids: Sequence[str]
    answer: Callable[[Sequence[SubagentReport]], ToolResult]
    seconds: float | None = None
    """Seconds since the start of the call; the call then no longer waits."""


@dataclass(frozen=True, slots=True)
class Tool(Generic[Input]):
    """One tool, as the model sees it and as the engine calls it.

    `description` is one or two sentences. `effect` decides what happens after a crash and which
    calls run in parallel. `time_limit` is the default in seconds. Aliases in `input_model` are
    accepted, but the model does not see them.
    """

    name: str
    description: str
    input_model: type[Input]
    run: Callable[[ToolContext, Input], Awaitable[ToolResult | WaitForRuns]]
    effect: Effect
    time_limit: float = 30.0
    asks: bool | None = None
    """Whether a call without a matching policy rule needs approval. None: its effect decides."""
    has_timeout_field: bool = True
    """Whether the input's field `timeout`, and the agent's own limit, set the time of a call."""
    aliases: tuple[str, ...] = ()
    """Other names that the model may use for the tool, although it does not see them."""
    runs_alone: bool = False
    """Whether each call runs alone, although the effect is READ.

    This is for calls that change rows of the run that other calls use, so that their order matters.
    """
    is_whole: bool = False
    """Whether the model must get a result complete. The tool then limits its size itself."""
    outlives_driver: bool = False
    """Whether another driver can continue a started call, as the same attempt."""
    variant: Callable[[Input], Tool[Any] | None] | None = None
    """A function that returns, for an input, the same tool with a stronger effect.

    The returned tool has the same name and input model. None: this tool.
    """
    trial: Callable[[ToolContext, Input], Awaitable[Preview | ToolResult]] | None = None
    """A function that returns a preview of a call's changes, or an error result.

    It makes no changes. The call always requires approval, which applies to the preview. Before the
    call is made, the preview is made again; if it has changed, the call requires a new approval.
    """
    leaves_machine: bool = False
    """Whether the input is sent to another machine, although the effect is READ."""
    proposes: Callable[[Input], Proposed | None] | None = None
    """A function that returns the change that an input proposes, or None.

    A call with a proposal always requires approval, and the decision makes the change: `run` is not
    called.
    """

    describe: Callable[[ToolContext, Input], Awaitable[str]] | None = None
    """A function that returns a sentence about an input for the approver; empty for none.

    For example, the name that belongs to an id. It only reads. If it fails, the request has no
    sentence.
    """

    def proposed(self, given: Input) -> Proposed | None:
        """Return the change that this input proposes, or None."""
        return None if self.proposes is None else self.proposes(given)


_COMMANDS = frozenset({"execute", "execute_python", "execute_in_sandbox"})
_WRITING = _COMMANDS | {"write_file", "edit_file"}


@dataclass(frozen=True, slots=True)
class PromptContext:
    """The data for a prompt segment.

    They do not change within an epoch, the time in which the start of the prompt stays the same.
    """

    spec: AgentSpec
    tool_names: frozenset[str]
    now: datetime
    parts: Mapping[str, Any] = field(default_factory=dict)
    """The content of features' parts, by their labels: see `RunPart.prompt_content`."""
    in_own_directory: bool = False
    """Whether /sandbox/workspace is the caller's own directory, which subagents share."""

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
    """Base class of a capability, such as a group of tools.

    Subclass it, give it a `name`, and override methods. It can add tools, a segment of the prompt,
    and the hooks of `agents.kernel.middleware`. An instance holds only configuration, and all runs
    share it.
    """

    profiles: frozenset[str] = frozenset({"full"})
    """The tool profiles that include the middleware."""
    tool_prefix: str = ""
    """The prefix of the tools' names if they depend on rows. Other tools must not use it."""
    tool_source: str = ""
    """Where such tools come from, for an error message."""

    def tools(self, spec: AgentSpec) -> Sequence[Tool[Any]]:
        """Return the tools for an agent. Omit a tool whose configuration is missing."""
        return ()

    def every_tool(self) -> Sequence[Tool[Any]]:
        """Return each tool that an agent can have, for lists and checks.

        Override it if `tools` depends on anything but the profile and the permission to build
        agents.
        """
        return [tool for spec in _ALMOST_EVERYTHING for tool in self.tools(spec)]

    def wanted_by(self, spec: AgentSpec) -> str:
        """Return the option of `spec` that requires these tools; empty if none does.

        If the agent's profile does not include the middleware, the definition is then refused.
        """
        return ""

    def prompt(self, context: PromptContext) -> str:
        """Return the segment of the system prompt; empty for none."""
        return ""


def error(message: str, code: str = "tool_error") -> ToolResult:
    """Return an error result. `message` tells the model the reason and an alternative."""
    return ToolResult(message, is_error=True, code=code)
