"""What may stand in an agent's file, and its JSON schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    create_model,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticKnownError

from agents.agent_files.reading import Path
from agents.kernel.integrations import integrations
from agents.kernel.options import (
    checked_options,
    option_classes,
    option_defaults,
    option_fields,
)
from agents.kernel.relations import relations
from agents.spec import (
    MAX_FALLBACKS,
    AgentSpec,
    FallbackModel,
    InterruptRule,
    PolicyRule,
    RetryRule,
)

SCHEMA_URL = "https://json-schema.org/draft/2020-12/schema"
Name = Annotated[str, Field(min_length=1, max_length=300)]
Cost = Annotated[float, Field(ge=0, lt=1_000_000, multiple_of=0.000001)]
Count = Annotated[int, Field(ge=0, le=2_147_483_647)]
Positive = Annotated[int, Field(ge=1, le=2_147_483_647)]
Tokens = Annotated[int, Field(ge=0, le=9_223_372_036_854_775_807)]


def _installed(name: str) -> str:
    names = [each.name for each in integrations()]
    if name not in names:
        raise PydanticKnownError("literal_error", {"expected": _one_of(names)})
    return name


def _one_of(names: list[str]) -> str:
    *others, last = (repr(name) for name in names)
    return f"{', '.join(others)} or {last}" if others else last


def _name_integrations(schema: dict[str, Any]) -> None:
    schema["enum"] = [each.name for each in integrations()]


IntegrationName = Annotated[
    str, AfterValidator(_installed), Field(json_schema_extra=_name_integrations)
]


class _Part(BaseModel):
    """Fields in snake_case; `in_snake_case` takes the same in camelCase, too."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SubagentFile(_Part):
    """Somebody the agent can delegate to. What is left out is as the agent has it."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")
    description: str = Field(min_length=1, max_length=300)
    system_prompt: str = ""
    provider: str = Field(default="", max_length=50)
    model: str = Field(default="", max_length=200)
    tools: list[Name] | None = None
    skills: list[Name] = []
    read_only: bool = False
    max_turns: Positive = 50
    max_tokens: Tokens | None = None
    max_cost: Cost | None = None
    max_seconds: Count | None = None


class AgentFile(_Part):
    """An agent of Vel. A field that is left out has its default.

    Times are seconds, costs US dollars. Databases and groups are named; what they are, and all
    secrets, stay where they are. The owner is not part of it.
    """

    name: str = Field(min_length=1, max_length=100)
    slug: str = Field(pattern=r"^[-a-zA-Z0-9_]{1,100}$")
    description: str = ""
    is_active: bool = True
    system_prompt: str = ""
    provider: str = Field(default="", max_length=50)
    model: str = Field(default="", max_length=200)
    fallbacks: list[FallbackModel] = Field(default=[], max_length=MAX_FALLBACKS)
    max_output_tokens: Count = 16_000
    thinking: Literal["", "adaptive", "disabled"] = ""
    effort: Literal["", "low", "medium", "high", "max"] = ""
    profile: Literal["full", "sandbox_only"] = "full"
    tools: list[Name] | None = Field(default=None, description="Left out: all of its profile.")
    builtin_skills: bool = True
    skill_mode: Literal["tool_result", "system_prompt"] = "tool_result"
    interrupt_on: dict[str, bool | InterruptRule] = {}
    approval_rules: list[PolicyRule] = []
    approvals_needed: Literal[1, 2] = 1
    self_approval: bool = True
    approval_expiry: Positive | None = None
    approver_groups: list[Name] = []
    guardrails: list[Name] = []
    on_stuck: Literal["note", "end"] = "note"
    tool_retries: list[RetryRule] = []
    sandbox: bool = True
    read_only: bool = False
    network: Literal["none", "allowlist", "full"] = "none"
    allowed_hosts: list[Name] = []
    toolbox: str = Field(default="", max_length=100)
    command_timeout: Annotated[int, Field(ge=1, le=600)] | None = None
    integrations: list[IntegrationName] = []
    general_subagent: bool = True
    background_subagents: bool = False
    max_concurrent_subagents: int = Field(default=5, ge=1, le=100)
    subagent_depth: int = Field(default=1, ge=0, le=5)
    subagents: list[SubagentFile] = []
    output_schema: dict[str, JsonValue] | None = None
    output_repairs: int = Field(default=2, ge=0, le=5)
    max_turns: Positive = 500
    max_tokens: Tokens | None = None
    max_cost: Cost | None = None
    max_seconds: Count | None = None
    everyone: bool = False
    mcp_tool: bool = False
    groups: list[Name] = []


def relation_shape() -> type[BaseModel]:
    """Return the shape of the fields that are relations of features: lists of names."""
    fields: dict[str, Any] = {relation.name: (list[Name], []) for relation in relations()}
    return create_model("Relations", __base__=_Part, **fields)


def _with_relations(fields: dict[str, Any], of_relations: dict[str, Any]) -> dict[str, Any]:
    """Return `fields` with those of relations before the integrations: services, too."""
    found = {}
    for name, field in fields.items():
        if name == "integrations":
            found.update(of_relations)
        found[name] = field
    return found


def file_fields() -> dict[str, FieldInfo]:
    """Return the fields of a file: those of `AgentFile` and relations, then options of features."""
    fields = _with_relations(dict(AgentFile.model_fields), dict(relation_shape().model_fields))
    return {**fields, **option_fields()}


def ambiguous_options() -> list[str]:
    """Return the options and relations of features that have the name of another field."""
    names = [relation.name for relation in relations()]
    fields = {*AgentSpec.model_fields, *AgentFile.model_fields}
    return sorted({*option_fields(), *names} & fields | option_fields().keys() & set(names))


def default_of(name: str) -> Any:
    """Return the value of a field that is not in the file; None for those that must be there."""
    if any(relation.name == name for relation in relations()):
        return []
    if name not in AgentFile.model_fields:
        return option_defaults()[name]
    field = AgentFile.model_fields[name]
    return None if field.is_required() else field.get_default(call_default_factory=True)


def check_shape(data: dict[str, Any]) -> list[Any]:
    """Return the errors of `data`, in the names of `file_fields`, as pydantic describes them."""
    options = option_fields()
    shape = relation_shape()
    of_features = {*options, *shape.model_fields}
    errors: list[Any] = []
    for check, part in (
        (AgentFile.model_validate, {name: data[name] for name in data if name not in of_features}),
        (shape.model_validate, {name: data[name] for name in data if name in shape.model_fields}),
        (checked_options, {name: data[name] for name in data if name in options}),
    ):
        try:
            check(part)
        except ValidationError as error:
            errors += error.errors(include_url=False)
    return errors


def in_snake_case(data: dict[str, Any]) -> tuple[dict[str, Any], dict[Path, Path]]:
    """`data` with the names that a file may also use put into those of `AgentFile`.

    `systemPrompt` is system_prompt, of subagents as well; `model` may be an object with provider
    and model; `customAgents` (or `subagents`) may be an object of subagents by name, each with a
    `systemPromptAddition`. Names that are neither stay, for `AgentFile` to refuse. Also returned
    is where in `data` each renamed part stands.
    """
    found, origin = _renamed(data, file_fields(), {"customAgents": "subagents"})
    model = found.get("model")
    if isinstance(model, dict) and set(model) <= {"provider", "model"} and "provider" not in found:
        del found["model"]
        found.update(model)
        origin |= {(name,): ("model", name) for name in model}
    subagents = found.get("subagents")
    place = origin.get(("subagents",), ("subagents",))
    keys: list[str | int] = []
    if isinstance(subagents, dict) and all(isinstance(each, dict) for each in subagents.values()):
        keys = list(subagents)
        subagents = [{"name": name, **each} for name, each in subagents.items()]
    elif isinstance(subagents, list):
        keys = list(range(len(subagents)))
    if keys:
        found["subagents"] = [*subagents]  # type: ignore[misc]  # a list by now
        for at, each in enumerate(found["subagents"]):
            origin["subagents", at] = (*place, keys[at])
            if isinstance(each, dict):
                also = {"systemPromptAddition": "system_prompt"}
                found["subagents"][at], names = _renamed(each, SubagentFile.model_fields, also)
                for new, old in names.items():
                    origin[("subagents", at, *new)] = (*place, keys[at], *old)
    return found, origin


def _renamed(
    data: dict[str, Any], fields: Iterable[str], also: dict[str, str]
) -> tuple[dict[str, Any], dict[Path, Path]]:
    names = {to_camel(name): name for name in fields} | also
    found: dict[str, Any] = {}
    origin: dict[Path, Path] = {}
    for key, value in data.items():
        name = names.get(key, key)
        # Twice under two names: the second stays as it is, and is refused by it.
        name = key if name in found or (name != key and name in data) else name
        found[name] = value
        origin[(name,)] = (key,)
    return found, origin


def agent_schema() -> dict[str, Any]:
    """The JSON schema of an agent's file, with the names in snake_case."""
    schema = AgentFile.model_json_schema()
    of_relations = relation_shape().model_json_schema().get("properties", {})
    schema["properties"] = _with_relations(schema["properties"], of_relations)
    for kind in option_classes():
        of_feature = kind.model_json_schema()
        schema["properties"] |= of_feature.get("properties", {})
        schema["$defs"] |= of_feature.get("$defs", {})
    return {"$schema": SCHEMA_URL, **schema, "title": "An agent of Vel"}
