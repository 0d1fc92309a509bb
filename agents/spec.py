"""The definition of an agent: the options of every agent, and the stored form of a version.

The classes of `OPTIONS` declare the fields once: type, limits, default, description, and the
permission that a change needs. Agent files and their JSON schema, the form in the admin, the REST
API and the Python API derive from them and from the options of features (`agents.kernel.options`).
`AgentSpec` is the pinned form in a run: the same fields with their values at that time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import PydanticKnownError

from agents.kernel.features import integrations
from agents.kernel.options import AgentOptions, FormHelp, Labels, Location, Suggest

Options = TypeVar("Options", bound=AgentOptions)
DecisionName = Literal["approve", "edit", "reject", "respond"]
Action = Literal["allow", "ask", "deny"]
Name = Annotated[str, Field(min_length=1, max_length=300)]
Provider = Annotated[str, Field(max_length=50), Suggest("providers")]
Model = Annotated[str, Field(max_length=200)]
Count = Annotated[int, Field(ge=0, le=2_147_483_647)]
Positive = Annotated[int, Field(ge=1, le=2_147_483_647)]
Tokens = Annotated[int, Field(ge=0, le=9_223_372_036_854_775_807)]
Cost = Annotated[float, Field(ge=0, lt=1_000_000, multiple_of=0.000001)]
"""In US dollars."""
SANDBOX_ONLY: Literal["sandbox_only"] = "sandbox_only"
"""The profile of agents that work with commands in a sandbox only."""
ALL_TOOLS = "*"
"""In an agent's tools: all tools of its profile, in addition to the named ones."""
ALL_DECISIONS: tuple[DecisionName, ...] = ("approve", "edit", "reject", "respond")


class InterruptRule(BaseModel):
    """The terms of approval requests for a tool. An empty field has the agent's value."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    allowed_decisions: tuple[DecisionName, ...] = Field(
        default=ALL_DECISIONS, description="The decisions that a person can make."
    )
    approvals_needed: Literal[1, 2] | None = Field(
        default=None, description="The number of different people who must approve."
    )
    self_approval: bool | None = Field(
        default=None, description="Whether the owner of the run can approve."
    )
    expiry: int | None = Field(
        default=None,
        ge=1,
        description="Seconds after which Vel rejects the request automatically.",
    )


class CallCondition(BaseModel):
    """A condition on calls for a rule or a grant. A call must match all parts that are set.

    `command` is a regular expression (RE2). `path`, `host` and `recipient` are patterns with `*`.
    `larger_than` is a size of the input in bytes. `input_sha256` identifies one exact input. See
    docs/guides/policy.md.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: str | None = Field(
        default=None,
        min_length=1,
        max_length=2000,
        description="A regular expression (RE2) for a command or code.",
    )
    path: str | None = Field(
        default=None, min_length=1, max_length=1000, description="A pattern with * for files."
    )
    host: str | None = Field(
        default=None, min_length=1, max_length=253, description="A pattern with * for hosts."
    )
    larger_than: int | None = Field(
        default=None, ge=0, description="The input has more than this number of bytes, as JSON."
    )
    input_sha256: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{64}$",
        description="The SHA-256 hash of the input as compact JSON (docs/guides/policy.md).",
    )
    recipient: str | None = Field(
        default=None,
        min_length=3,
        max_length=320,
        description="A pattern with * for addresses of recipients.",
    )


class PolicyRule(BaseModel):
    """A rule. `tool` is a name or a pattern with `*`. The first rule that matches decides."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: Annotated[str, Suggest("tools")] = Field(
        min_length=1, max_length=200, description="The name of a tool, or a pattern with *."
    )
    when: CallCondition = Field(
        default=CallCondition(),
        description="The conditions, all of which must match. Empty: every call of the tool.",
    )
    action: Action = Field(
        description="allow: the call runs. ask: a person must approve it. deny: it does not run."
    )
    reason: str = Field(
        default="",
        max_length=1000,
        description="Text for the model (deny) or for the person who decides (ask).",
    )
    ask: InterruptRule = Field(
        default=InterruptRule(), description="The terms of the request, for the action ask."
    )


class SubagentSpec(BaseModel):
    """A subagent that an agent can delegate to.

    A value that is left out or empty is the agent's, with three exceptions: an empty list of
    `tools` means none, `max_turns` is 50, and without `max_tokens` or `max_cost` the subagent has
    no limit of its own. `tools` are names. `skills` are the only skills, loaded from the start.
    With `read_only`, the subagent and its commands see the parent's workspace but cannot change
    files.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(
        pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$",
        description="The name with which the agent delegates to it.",
    )
    description: str = Field(
        min_length=1,
        max_length=300,
        description="What it is for. The agent reads this to choose a subagent.",
    )
    system_prompt: str = Field(default="", description="Its instructions.")
    provider: Provider = Field(default="", description="Empty: the provider of the agent.")
    model: Model = Field(
        default="",
        description="Empty: the default model of its provider, or the model of the agent if "
        "provider is empty, too.",
    )
    tools: Annotated[tuple[Name, ...] | None, Suggest("tools")] = Field(
        default=None,
        description="Names of its tools. Left out: the tools of the agent. An empty list []: none.",
    )
    skills: Annotated[tuple[Name, ...], Suggest("skills")] = Field(
        default=(),
        description="Its only skills, loaded from the start. Empty: the skills of the agent.",
    )
    read_only: bool = Field(
        default=False, description="It and its commands can read the workspace but not change it."
    )
    max_turns: Positive = Field(default=50, description="The most turns of one of its runs.")
    max_tokens: Tokens | None = Field(
        default=None, description="All tokens of one of its runs. Empty: no limit of its own."
    )
    max_cost: Cost | None = Field(
        default=None, description="US dollars of one of its runs. Empty: no limit of its own."
    )
    max_seconds: Count | None = Field(
        default=None, description="Wall time of one of its runs. Empty: the limit of the agent."
    )


def _installed(name: str) -> str:
    names = [each.name for each in integrations()]
    if name not in names:
        *others, last = (repr(each) for each in names)
        expected = f"{', '.join(others)} or {last}" if others else last
        raise PydanticKnownError("literal_error", {"expected": expected})
    return name


def _name_integrations(schema: dict[str, Any]) -> None:
    schema["enum"] = [each.name for each in integrations()]


IntegrationName = Annotated[
    str, AfterValidator(_installed), Field(json_schema_extra=_name_integrations)
]
CONFIGURE_SANDBOX = "agents.configure_sandbox"
CONFIGURE_APPROVAL = "agents.configure_approval"
"""Needed to change when people are asked: others could otherwise let calls run unapproved."""


class PromptOptions(AgentOptions):
    title = "Prompt"
    listed = []

    system_prompt: str = Field(
        default="",
        description="The instructions of the agent (its AGENTS.md). Variables: {{date}}, "
        "{{time_zone}}, {{user.name}}, {{user.first_name}}, {{thread.id}}, {{thread.title}}, "
        "{{agent.name}}, and {{context.NAME}} for values of callers.",
    )


class ModelOptions(AgentOptions):
    title = "Model"
    listed = []

    provider: Provider = Field(default="", description="Empty: the provider of the settings.")
    model: Model = Field(default="", description="Empty: the default model of the provider.")
    max_output_tokens: Count = Field(
        default=16_000,
        description="The most tokens that the model may write in one reply, with its thinking.",
    )
    thinking: Annotated[
        Literal["", "adaptive", "disabled"],
        Labels({"": "---------", "adaptive": "adaptive", "disabled": "off"}),
    ] = Field(default="", description="Empty: the model's own default.")
    effort: Annotated[Literal["", "low", "medium", "high", "max"], Labels({"": "---------"})] = (
        Field(
            default="",
            description="How much the model spends on an answer. Empty: the model's own default.",
        )
    )
    prompt_caching: bool = Field(
        default=True,
        description="Prompts use the cache of the model's provider. Off: Vel does not ask for it.",
    )


class ToolOptions(AgentOptions):
    title = "Tools"
    listed = ["profile"]

    profile: Annotated[
        Literal["full", "sandbox_only"],
        Labels(
            {
                "full": "full: planning, files, execution",
                "sandbox_only": "sandbox only: todos and execute_in_sandbox",
            }
        ),
    ] = Field(
        default="full",
        description="The set of tools. sandbox_only: the agent works only with commands in the "
        "sandbox.",
    )
    tools: Annotated[
        tuple[Name, ...] | None,
        FormHelp("The tools that it may use, each with its effect: read, write or external."),
    ] = Field(
        default=None,
        description='Names of the tools it may use, such as ["ls", "read_file"]. Left out, or an '
        "empty field: all of its profile. An empty list []: none.",
    )

    def tool_names(self) -> Iterator[tuple[Location, str]]:
        yield from ((("tools", at), name) for at, name in enumerate(self.tools or ()))


class ApprovalOptions(AgentOptions):
    title = "Approval"
    permission = CONFIGURE_APPROVAL
    listed = []

    interrupt_on: Annotated[
        dict[str, bool | InterruptRule],
        FormHelp("Tools whose calls wait for a person, or never do. Rules come first."),
    ] = Field(
        default={},
        description='Tools that wait for a person, as {"execute": true} or '
        '{"edit_file": {"allowed_decisions": ["approve", "reject"]}}; false never asks.',
    )
    approval_rules: Annotated[
        tuple[PolicyRule, ...],
        FormHelp("The first rule that fits a call decides. If none fits, “Interrupt on” does."),
    ] = Field(
        default=(),
        description="Rules. The first that matches a call decides. If none matches, interrupt_on "
        'decides. Example: [{"tool": "execute", "when": {"command": "rm .*"}, "action": "deny", '
        '"reason": "Nothing is deleted."}].',
    )
    approvals_needed: Annotated[
        Literal[1, 2], Labels({1: "one person", 2: "two different people"})
    ] = Field(default=1, description="The number of people who must approve a call.")
    self_approval: bool = Field(
        default=True, description="Whether people can approve calls of their runs."
    )
    approval_expiry: Positive | None = Field(
        default=None,
        description="Seconds after which a request is rejected automatically. Empty: never.",
    )

    def tool_names(self) -> Iterator[tuple[Location, str]]:
        yield from ((("interrupt_on", name), name) for name in self.interrupt_on)
        yield from (
            (("approval_rules", at, "tool"), rule.tool)
            for at, rule in enumerate(self.approval_rules)
        )


class SandboxOptions(AgentOptions):
    title = "Sandbox and network"
    permission = CONFIGURE_SANDBOX
    listed = ["sandbox", "network", "toolbox"]

    sandbox: bool = Field(
        default=True, description="Off: files in the database and no tools that run code."
    )
    read_only: bool = Field(
        default=False,
        description="It can change no file, nor can its commands and its subagents.",
    )
    network: Annotated[
        Literal["none", "allowlist", "full"],
        Labels({"none": "none", "allowlist": "allow-list", "full": "any public address"}),
    ] = Field(
        default="none",
        description="The network of commands in the sandbox. allowlist: only the hosts of "
        "allowed_hosts. full: any public address.",
    )
    allowed_hosts: Annotated[
        tuple[Name, ...],
        FormHelp(
            "The allow-list, one entry on each line: pypi.org, *.example.org, api.example.com:8443."
        ),
    ] = Field(
        default=(),
        description='The entries of the allow-list, for example ["pypi.org", "*.example.org", '
        '"api.example.com:8443"].',
    )
    toolbox: Annotated[str, Field(max_length=100)] = Field(
        default="",
        description="A Python environment that the operator built. Empty: the system's Python.",
    )
    command_timeout: Annotated[int, Field(ge=1, le=600)] | None = Field(
        default=None,
        description="Seconds a command may take unless the call says otherwise. Empty: the tool's "
        "own.",
    )


class IntegrationOptions(AgentOptions):
    title = "Other services"
    listed = []

    integrations: tuple[IntegrationName, ...] = Field(
        default=(),
        description="Other services that it acts in, with the credentials of who runs it. agents: "
        "it can build agents of Vel, and a person approves each one.",
    )


class OutputOptions(AgentOptions):
    title = "Form of answers"
    listed = ["output_schema"]

    output_schema: dict[str, JsonValue] | None = Field(
        default=None,
        description="The form of its final answers, as JSON Schema: "
        '{"type": "object", "properties": {"total": {"type": "number"}}, "required": '
        '["total"]}. Empty: it answers in words.',
    )


class LimitOptions(AgentOptions):
    title = "Limits of a run"
    listed = ["max_turns", "max_seconds"]

    max_turns: Positive = Field(
        default=500,
        description="The most turns (model calls with their tool calls) of one run. A run that "
        "reaches it fails.",
    )
    max_seconds: Count | None = Field(
        default=None, description="Wall time of one run. Empty: no limit."
    )


OPTIONS = (
    PromptOptions,
    ModelOptions,
    ToolOptions,
    ApprovalOptions,
    SandboxOptions,
    IntegrationOptions,
    OutputOptions,
    LimitOptions,
)
"""The options of every agent, in the order of the form and of the file."""


class AgentSpec(
    LimitOptions,
    IntegrationOptions,
    SandboxOptions,
    ApprovalOptions,
    ToolOptions,
    ModelOptions,
    PromptOptions,
):
    """An agent as pinned by a run. Times are in seconds, cost in US dollars; None means no limit.

    `provider` and `model` are the effective ones, never empty. In addition it has the fields of
    features (`kernel.options`, `kernel.relations`), as stored. Fields of a feature that is not
    installed are kept without effect.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str
    slug: str
    subagent: str = ""
    """The name of the subagent in its parent, for a subagent."""
    toolkit: str = ""
    """Identifies the tools and middleware of the Python program that defines the agent.

    They exist only in this program. The value changes with the descriptions for the model.
    """
    needs: dict[str, str] = Field(default_factory=dict)
    """The required middleware of features, each with the option that needs it.

    A run cannot start without them.
    """
    output_schema: str = ""
    """A JSON Schema for final answers, or "" for any form.

    It is JSON text, because the order of names matters to models, and some databases do not keep
    it.
    """

    def option(self, kind: type[Options]) -> Options:
        """Return the options of one feature, with defaults for missing values."""
        stored = self.__pydantic_extra__ or {}
        own = {name: stored[name] for name in kind.model_fields if name in stored}
        return kind.model_validate_json(json.dumps(own))

    def needs_of_run(self, run_form: Any) -> dict[str, str]:
        """Return the middleware that a run needs: its names, each with the option that needs it.

        `run_form` is the output schema of the run itself, or None.
        """
        needed = dict(self.needs)
        if run_form is not None or self.output_schema:
            needed["structured_output"] = "output_schema"
        return needed

    @classmethod
    def completed(cls, stored: Mapping[str, Any]) -> dict[str, Any]:
        """Return a stored version with defaults for missing fields.

        Two versions are equivalent if the results are equal. An invalid version is returned
        unchanged.
        """
        try:
            return cls.model_validate(stored).model_dump(mode="json")
        except ValidationError:
            return dict(stored)

    @property
    def output_schema_value(self) -> dict[str, Any] | None:
        return json.loads(self.output_schema) if self.output_schema else None
