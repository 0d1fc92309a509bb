"""The fields of an agent file, and its JSON schema."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from django.core.signals import setting_changed
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from agents.agent_files.reading import Path
from agents.kernel.options import definition_class, option_fields
from agents.kernel.relations import AgentRelation, OwnRows, relations
from agents.spec import OPTIONS, AgentSpec, Name, SubagentSpec

SCHEMA_URL = "https://json-schema.org/draft/2020-12/schema"
_DOC = """An agent of Vel. Omitted fields have their defaults.

Times are in seconds, costs in US dollars. Databases and groups are referenced by name. The file has
no secrets, no owner, and no definitions of databases and groups."""


class Identity(BaseModel):
    """The name and description of an agent."""

    name: str = Field(
        min_length=1, max_length=100, description="The name that people see, such as Weekly report."
    )
    slug: str = Field(
        pattern=r"^[-a-zA-Z0-9_]{1,100}$",
        description="The unique name for commands and addresses, such as weekly-report. An import "
        "changes the agent with this slug, or creates it.",
    )
    description: str = Field(
        default="", description="What the agent does, for the people who choose an agent."
    )
    is_active: bool = Field(
        default=True, description="Off: the agent is archived and can start no runs."
    )


class Rows(BaseModel):
    """The groups that approve its calls, and the people who can use it."""

    approver_groups: tuple[Name, ...] = Field(
        default=(),
        description="Members of these groups decide the approval requests of its runs.",
    )
    everyone: bool = Field(
        default=False, description="Every signed-in user can start runs with it."
    )
    mcp_tool: bool = Field(
        default=False,
        description="Users of the agent can also call it as a tool from an MCP client "
        "(docs/guides/mcp.md).",
    )
    groups: tuple[Name, ...] = Field(
        default=(), description="Members of these groups can start runs with it."
    )


@lru_cache(maxsize=1)
def file_class() -> type[BaseModel]:
    """Return the pydantic model of an agent file: an agent's identity, options and related rows."""
    # Pydantic needs only annotations, and type checkers cannot know these names.
    fields: dict[str, Any] = {
        relation.name: (_rows_of(relation), Field(default=(), description=relation.help_text))
        for relation in relations()
    }
    of_relations = create_model("Relations", **fields)
    # The order of fields in pydantic starts with the last base.
    bases = (Rows, of_relations, definition_class(), Identity)
    config = ConfigDict(frozen=True, extra="forbid")
    whole = type("AgentFile", bases, {"__doc__": _DOC, "model_config": config})
    assert issubclass(whole, BaseModel)
    return whole


def _rows_of(relation: AgentRelation) -> Any:
    """Return the type of a relation in the file."""
    item: Any = relation.item if isinstance(relation, OwnRows) else Name
    return tuple[item, ...]


def file_fields() -> dict[str, FieldInfo]:
    """Return the fields of a file, in their order."""
    return dict(file_class().model_fields)


def ambiguous_options(attributes: Iterable[str]) -> list[str]:
    """Return options and relations of features whose names are already in use.

    `attributes` are the names of the model's attributes: `dir(Agent)`.
    """
    of_relations = {relation.name for relation in relations()}
    options = option_fields().keys()
    fields = {*AgentSpec.model_fields, *Identity.model_fields, *Rows.model_fields}
    of_every_agent = {name for kind in OPTIONS for name in kind.model_fields}
    fixed = (fields | set(attributes)) - of_every_agent
    return sorted((of_relations & (options | fields)) | (options & fixed))


@lru_cache(maxsize=1)
def _defaults() -> dict[str, Any]:
    """Return the default of each field that has one, as JSON data."""
    return dict(file_class().model_construct().model_dump(mode="json"))


def default_of(name: str) -> Any:
    """Return the value of a field that is not in the file. None for required fields."""
    return copy.deepcopy(_defaults().get(name))


def check_shape(data: dict[str, Any]) -> list[Any]:
    """Return pydantic's errors for `data`, with the names of `file_fields`."""
    try:
        # As JSON, so that a list is valid for a tuple, but a number is not valid for a text.
        file_class().model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        return list(error.errors(include_url=False))
    return []


_ADDITION = "systemPromptAddition"


def in_snake_case(data: dict[str, Any]) -> tuple[dict[str, Any], dict[Path, Path]]:
    """Return `data` with alternative names converted to `file_fields`, and the original paths.

    Alternatives: `systemPrompt` for system_prompt, also in subagents; `model` as an object with
    provider and model; `customAgents` (or `subagents`) as an object of subagents by name, each with
    an optional `systemPromptAddition`, which follows the agent's own prompt. Unknown names are not
    changed, and are refused later.
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
                also = {_ADDITION: "system_prompt"}
                one, names = _renamed(each, SubagentSpec.model_fields, also)
                if names.get(("system_prompt",)) == (_ADDITION,):
                    parts = (found.get("system_prompt"), one["system_prompt"])
                    if all(isinstance(part, str | None) for part in parts):
                        one["system_prompt"] = "\n\n".join(filter(None, parts))
                found["subagents"][at] = one
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
        # If both names are used, the second is not changed, and is refused later.
        name = key if name in found or (name != key and name in data) else name
        found[name] = value
        origin[(name,)] = (key,)
    return found, origin


def agent_schema() -> dict[str, Any]:
    """Return the JSON schema of an agent's file, with the names in snake_case."""
    schema = file_class().model_json_schema()
    return {"$schema": SCHEMA_URL, **schema, "title": "An agent of Vel"}


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        file_class.cache_clear()
        _defaults.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.agent_files.shape")
