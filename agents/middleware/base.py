"""What a capability is made of: tools, a segment of the prompt, and what a tool may use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from agents.databases.target import DatabaseTarget
from agents.events.append import EventDraft
from agents.models import Effect
from agents.providers.base import Block
from agents.spec import AgentSpec, McpToolSpec, SubagentSpec
from memory.edits import MemoryEdit
from sandbox.backends.protocol import FileBackend
from sandbox.base import BaseSandbox
from skills_app.pinned import PinnedSkill

Input = TypeVar("Input", bound=BaseModel)
T = TypeVar("T")


@dataclass(slots=True)
class ToolResult:
    """What a tool gives back to the model.

    `content` is text, a JSON-able dictionary or list (sent as JSON text), or, with `blocks`, a
    list of content blocks. `events` and `commit` take effect in the transaction that stores the
    result: rows written by `commit` exist exactly once, whatever crashes.
    """

    content: Any
    is_error: bool = False
    code: str = ""
    blocks: bool = False
    events: list[EventDraft] = field(default_factory=list)
    commit: Callable[[], None] | None = None


class SkillsInUse(Protocol):
    """The skills of a run, by name: those it has, and those that are loaded.

    The two methods are for a result's `commit`, so that nothing is active that is not stored.
    """

    @property
    def pinned(self) -> Mapping[str, PinnedSkill]: ...

    @property
    def active(self) -> Mapping[str, PinnedSkill]: ...

    def activate(self, skills: Sequence[PinnedSkill]) -> None: ...

    def deactivate(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class TaskOrder:
    """One task for one subagent. `index` is its place among the tasks of its call."""

    index: int
    subagent: SubagentSpec
    message: str


@dataclass(frozen=True, slots=True)
class SubagentReport:
    """A subagent's run as it is now. `text` is its answer, `error` why there is none."""

    run_id: str
    index: int
    subagent: str
    status: str
    has_ended: bool
    text: str = ""
    error: str = ""


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


class Subagents(Protocol):
    """The runs that a run has delegated to. Each method raises `SubagentError` for the model."""

    async def start(self, orders: Sequence[TaskOrder]) -> Sequence[str]:
        """The ids of this call's runs, which are made the first time, in the order of `orders`."""

    async def report(self, run_ids: Sequence[str]) -> Sequence[SubagentReport]:
        """Of this run's own children only."""

    async def cancel(self, run_id: str) -> SubagentReport:
        """End a child and all below it; how it is afterwards."""


class SubagentError(Exception):
    """What was asked of subagents cannot be done. The message is for the model."""


class McpServers(Protocol):
    """The MCP servers of a run. Its connections live as long as a driver has the run."""

    async def call(
        self, tool: McpToolSpec, arguments: Mapping[str, Any], seconds: float
    ) -> McpAnswer:
        """Make one call, with all checks. Raises `agents.mcp.errors.McpError`."""


@dataclass(frozen=True, slots=True)
class McpAnswer:
    """A result as the protocol has it, with the secrets of its server left out.

    `shows_pictures`: whether the run's model can look at them.
    """

    result: Mapping[str, Any]
    shows_pictures: bool


Preview = dict[str, Any]
"""What a trial of a call shows, as JSON. Its `digest` is the same for the same outcome."""


class ToolContext(Protocol):
    """What the engine lends a tool for one call."""

    run_id: str
    thread_id: str
    agent_id: str
    owner_id: int
    call_id: str
    spec: AgentSpec
    deadline: float
    """Seconds that the call may take, by its input, the agent's setting or the tool's default."""

    @property
    def skills(self) -> SkillsInUse: ...

    @property
    def subagents(self) -> Subagents: ...

    @property
    def approved(self) -> Preview | None:
        """What a person was shown of this call, approved, and still holds; None without trial."""

    @property
    def mcp(self) -> McpServers: ...

    def files(self) -> FileBackend:
        """The thread's files. Opening and using them blocks: only within `in_thread`."""

    def sandbox(self, timeout: float) -> BaseSandbox:
        """A sandbox over the thread's workspace. Raises `SandboxUnavailable`."""

    @property
    def marker(self) -> str:
        """The token by which what this run started can be found and killed."""

    async def in_thread(
        self,
        function: Callable[..., T],
        *arguments: Any,
        on_cancel: Callable[[], None] | None = None,
    ) -> T:
        """Run blocking code on a thread of its own.

        When the call is cancelled `on_cancel` is called, which should make the code return, and
        the call ends when it has: nothing goes on behind the engine's back.
        """

    async def in_database(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function that queries the database, in a short transaction."""

    async def database_targets(self) -> Mapping[str, DatabaseTarget]:
        """The databases of `spec.databases` that the agent still has, by name.

        They hold passwords: nothing of a target's URL belongs in a result, an event or a log.
        Raises `agents.selectors.databases.DatabaseUnavailable`, whose message is for the model, if
        the spec names some and none can be used; `targets[name]` raises it for one of several.
        """

    def progress(self, text: str) -> None:
        """Show watchers more output of a call that is still running. Safe from any thread."""


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
    memory_edit: Callable[[Input], MemoryEdit | None] | None = None
    """What an input would do to the agent's memory; None if it leaves that alone.

    Such a call always waits for a person, and the decision makes the edit: `run` is not called.
    """


@dataclass(frozen=True, slots=True)
class PromptSkill:
    """A loaded skill with its instructions."""

    skill: PinnedSkill
    text: str


@dataclass(frozen=True, slots=True)
class PromptContext:
    """What a prompt segment may depend on; all of it is fixed when the epoch begins."""

    spec: AgentSpec
    tool_names: frozenset[str]
    now: datetime
    skills: Sequence[PinnedSkill] = ()
    active_skills: Sequence[PromptSkill] = ()
    """With `spec.skill_mode` system_prompt: those whose instructions belong in the prompt."""


class Middleware:
    """A capability. Subclass it, give it a `name`, and override what it adds.

    An instance holds configuration only and is shared by all runs: what a run must remember is in
    rows, or in `get_state` and `load_state`.
    """

    name: str = ""
    profiles: frozenset[str] = frozenset({"full"})
    """The tool profiles that it is part of."""

    def tools(self, spec: AgentSpec) -> Sequence[Tool[Any]]:
        """Its tools for an agent. What is not configured is not offered."""
        return ()

    def prompt(self, context: PromptContext) -> str:
        """Its segment of the system prompt; empty for none."""
        return ""


def error(message: str, code: str = "tool_error") -> ToolResult:
    """A result that tells the model what went wrong and what to do instead."""
    return ToolResult(message, is_error=True, code=code)


def wire_schema(model: type[BaseModel]) -> Block:
    """A tool's input schema without what only costs tokens: titles, nulls, indirections.

    Raw pydantic schemas are about twice the size.
    """
    raw = model.model_json_schema(by_alias=False)
    schema: Block = _compact(raw, raw.get("$defs", {}))
    schema.setdefault("properties", {})
    schema.pop("description", None)
    return schema


def _compact(node: Any, definitions: Block, *, names: bool = False) -> Any:
    """`names`: the keys of `node` are names of properties, not words of JSON Schema."""
    if isinstance(node, list):
        return [_compact(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if names:
        return {key: _compact(value, definitions) for key, value in node.items()}
    if "$ref" in node:
        return _compact(definitions[node["$ref"].removeprefix("#/$defs/")], definitions)
    options = [option for option in node.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        node = {**options[0], **{key: value for key, value in node.items() if key != "anyOf"}}
    return {
        key: _compact(value, definitions, names=key == "properties")
        for key, value in node.items()
        if key not in ("title", "additionalProperties", "$defs")
        and not (key == "default" and value in (None, "", False))
    }
