"""What a run needs to know of its agent: the frozen content of an `AgentVersion`."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from agents.kernel.options import AgentOptions

Options = TypeVar("Options", bound=AgentOptions)
DecisionName = Literal["approve", "edit", "reject", "respond"]
Action = Literal["allow", "ask", "deny"]
ALL_TOOLS = "*"
"""Among an agent's tools: all of its profile, beside those that are named."""
ALL_DECISIONS: tuple[DecisionName, ...] = ("approve", "edit", "reject", "respond")


class InterruptRule(BaseModel):
    """How one tool asks a person first. None: as the agent says."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    allowed_decisions: tuple[DecisionName, ...] = ALL_DECISIONS
    approvals_needed: Literal[1, 2] | None = None
    self_approval: bool | None = None
    expiry: int | None = Field(default=None, ge=1)
    """Seconds."""


class CallCondition(BaseModel):
    """What a call must be for a rule or a grant to fit: all that is given holds.

    `command` is a regular expression (RE2), `path`, `host` and `recipient` are patterns with `*`,
    `larger_than` counts bytes of the input, `input_sha256` names one input exactly. How each is
    read is in `agents.conditions`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: str | None = Field(default=None, min_length=1, max_length=2000)
    path: str | None = Field(default=None, min_length=1, max_length=1000)
    host: str | None = Field(default=None, min_length=1, max_length=253)
    larger_than: int | None = Field(default=None, ge=0)
    input_sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    recipient: str | None = Field(default=None, min_length=3, max_length=320)

    @model_serializer(mode="wrap")
    def _without_later_default(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As of `AgentSpec`: a stored version of an earlier release has no recipient."""
        fields: dict[str, Any] = dump(self)
        if self.recipient is None:
            fields.pop("recipient", None)
        return fields


class PolicyRule(BaseModel):
    """`tool` is a name or a pattern with `*`. The first rule that fits a call decides."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: str = Field(min_length=1, max_length=200)
    when: CallCondition = CallCondition()
    action: Action
    reason: str = Field(default="", max_length=1000)
    """Told to the model on `deny`, to the person on `ask`."""
    ask: InterruptRule = InterruptRule()
    """How it asks, with the action `ask`."""


class SubagentSpec(BaseModel):
    """Somebody an agent can delegate to. None, and empty, mean: as the agent itself has it.

    `tools` are names; the field `skills` names those that are loaded from the beginning, and are
    the only ones then. `read_only`: it sees the parent's workspace and can change no file, nor
    can its commands.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")
    description: str = Field(min_length=1, max_length=300)
    system_prompt: str = ""
    provider: str = ""
    model: str = ""
    tools: tuple[str, ...] | None = None
    skills: tuple[str, ...] = ()
    read_only: bool = False
    max_turns: int = Field(default=50, ge=1)
    max_tokens: int | None = None
    max_cost: float | None = None
    max_seconds: int | None = None


class RetryRule(BaseModel):
    """Which calls are made again after a transient error; only such as just read ever are.

    `tool` is a name or a pattern with `*`; the first rule that fits decides. `attempts` counts the
    first one, too. `backoff` is the first pause in seconds; it doubles, up to a minute.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: str = Field(min_length=1, max_length=200)
    attempts: int = Field(ge=2, le=10)
    backoff: float = Field(default=1.0, ge=0, le=60)


MAX_FALLBACKS = 3


class FallbackModel(BaseModel):
    """A model that continues a run if those before it are unavailable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: str = Field(min_length=1, max_length=50)
    model: str = Field(min_length=1, max_length=200)


class McpToolSpec(BaseModel):
    """A tool of an MCP server as a person accepted it. `name` is what the model calls it.

    `input_schema` is JSON text, since the order of names matters to models. `digest` is of what
    the server said of the tool: while it says anything else, calls are refused.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    server: str
    tool: str
    description: str
    input_schema: str
    effect: Literal["read", "external"] = "external"
    seconds: int
    digest: str


class AgentSpec(BaseModel):
    """An agent as a run pins it. Times are seconds, cost is US dollars; None means no limit.

    Beside these fields it has what features add (`kernel.options`, `kernel.relations`), as stored.
    What a feature added that is not installed is kept and has no effect.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

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
    approval_rules: tuple[PolicyRule, ...] = ()
    approvals_needed: Literal[1, 2] = 1
    self_approval: bool = True
    approval_expiry: int | None = Field(default=None, ge=1)
    builtin_skills: bool = True
    skill_mode: Literal["tool_result", "system_prompt"] = "tool_result"
    sandbox: bool = True
    network: Literal["none", "allowlist", "full"] = "none"
    allowed_hosts: tuple[str, ...] = ()
    toolbox: str = ""
    command_timeout: int | None = None
    integrations: tuple[str, ...] = ()
    """Other services that it acts in, by the credential of who runs it."""
    mcp_tools: tuple[McpToolSpec, ...] = ()
    """Of MCP servers. Whether it still has them is asked anew at each call."""
    subagents: tuple[SubagentSpec, ...] = ()
    general_subagent: bool = True
    background_subagents: bool = False
    max_concurrent_subagents: int = Field(default=5, ge=1, le=100)
    subagent_depth: int = Field(default=1, ge=0, le=5)
    """How many levels there may be below it."""
    subagent: str = ""
    """Of a subagent: which one of its parent's it is."""
    read_only: bool = False
    """It can change no file, nor can its commands. A subagent sees the files of its parent then."""
    toolkit: str = ""
    """Names the tools and middleware of the Python program that it belongs to: only there they are.
    It changes when what a model is told of them does."""
    guardrails: tuple[str, ...] = ()
    """Names of registered guardrails, in the order in which they check."""
    on_stuck: Literal["note", "end"] = "note"
    """A run that repeats itself is told so; with `end` it fails if it goes on."""
    tool_retries: tuple[RetryRule, ...] = ()
    output_schema: str = ""
    """The form of its final answers: a JSON Schema as JSON text, since the order of names matters
    to models and not every database keeps it. Empty: any."""
    output_repairs: int = Field(default=2, ge=0, le=5)
    """How often it is asked again for an answer that fits."""
    fallbacks: tuple[FallbackModel, ...] = Field(default=(), max_length=MAX_FALLBACKS)
    """Models that continue a run, one after the other, if the one before is unavailable."""
    max_turns: int = 500
    max_tokens: int | None = None
    max_cost: float | None = None
    max_seconds: int | None = None

    def option(self, kind: type[Options]) -> Options:
        """Return the options of one feature, with defaults where the agent has no value."""
        stored = self.__pydantic_extra__ or {}
        own = {name: stored[name] for name in kind.model_fields if name in stored}
        return kind.model_validate_json(json.dumps(own))

    def needed_middleware(self, *, has_form: bool) -> dict[str, str]:
        """Return the names of the middleware that the agent needs, each with the field.

        `has_form`: the answer must have a form.
        """
        needed = {}
        if has_form:
            needed["structured_output"] = "output_schema"
        if self.on_stuck == "end":
            needed["stuck"] = "on_stuck"
        if self.tool_retries:
            needed["tool_retries"] = "tool_retries"
        if self.fallbacks:
            needed["fallbacks"] = "fallbacks"
        return needed

    @property
    def output_schema_value(self) -> dict[str, Any] | None:
        return json.loads(self.output_schema) if self.output_schema else None

    @model_serializer(mode="wrap")
    def _without_later_defaults(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out the fields that later releases brought, where they say nothing.

        Versions are compared by what is dumped: an agent that was defined before there was such a
        field stays at its version.
        """
        fields: dict[str, Any] = dump(self)
        for name in LATER_FIELDS:
            if getattr(self, name) == type(self).model_fields[name].default:
                fields.pop(name, None)
        return fields


LATER_FIELDS = (
    "integrations",
    "mcp_tools",
    "subagents",
    "general_subagent",
    "background_subagents",
    "max_concurrent_subagents",
    "subagent_depth",
    "subagent",
    "read_only",
    "toolkit",
    "guardrails",
    "on_stuck",
    "tool_retries",
    "output_schema",
    "output_repairs",
    "fallbacks",
)
"""Fields of `AgentSpec` that stored versions of an earlier release do not have."""
