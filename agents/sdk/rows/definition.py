"""Store the agent of a program. Its row belongs to the program's owner, and each run saves it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from django.utils.text import slugify
from pydantic import ValidationError

from agents.kernel.features import entries
from agents.kernel.lazy_modules import lazy_modules
from agents.kernel.mounts import mounts
from agents.kernel.options import (
    checked_options,
    option_classes,
    option_default,
    option_fields,
    validated_options,
)
from agents.kernel.relations import AgentRelation, OwnRows, relation_named, relations
from agents.middleware.custom.registered import registered_tools
from agents.middleware.custom.toolkit import Toolkit
from agents.middleware.definition_checks import COMMANDS
from agents.middleware.registry import (
    build_toolset,
    built_in_tools,
    known_tool_names,
    tool_aliases,
    toolset_for,
)
from agents.models import Agent
from agents.sdk.answer_form import form_of
from agents.sdk.config import (
    COMMAND_SECONDS,
    DeepAgentConfig,
    SubagentConfig,
    function_names,
    stored_options,
)
from agents.sdk.errors import SetupError
from agents.sdk.models import ModelChoice, checked, choice_of
from agents.sdk.option_values import ARGUMENTS
from agents.services.agent_definitions.actions import save_agent
from agents.services.errors import InvalidRequest
from agents.spec import OPTIONS, SANDBOX_ONLY, AgentSpec
from sandbox.paths import is_within

with lazy_modules:
    # Import late, because the feature may be missing.
    from agents.features.subagents import inputs, types

_PLANNING = frozenset({"write_todos", "read_todos"})
_MEMORY = frozenset({"write_memory", "read_memory", "list_memory"})
_EXECUTION = frozenset({"execute", "execute_python", "execute_in_sandbox"})
MIDDLEWARE_NAME = 100
"""The maximum length in characters, as in the rows with the state of a middleware."""


@dataclass(frozen=True)
class Definition:
    """A checked config of an agent. URLs of databases are encrypted in it."""

    config: DeepAgentConfig
    choice: ModelChoice
    toolkit: Toolkit
    subagents: tuple[SubagentConfig, ...]
    interrupt_on: Mapping[str, Any]
    databases: Mapping[str, Any] = field(repr=False, default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        config: DeepAgentConfig,
        toolkit: Toolkit,
        subagents: tuple[SubagentConfig, ...],
        *,
        needs_model: bool = True,
    ) -> Definition:
        """Check a config and return its definition. Raises `SetupError` if a run could not use it.

        Without `needs_model`, the model and its API key are not checked.
        """
        config, subagents = _without_aliases(config), tuple(map(_without_aliases, subagents))
        check_names(toolkit, subagents)
        _check_routes(toolkit)
        known = known_tool_names() | {tool.name for tool in toolkit.all_tools}
        if unknown := sorted(set(config.interrupt_on) - known):
            raise SetupError(f"interrupt_on: there is no tool {unknown[0]!r}.")
        if config.memory and not built_in_tools().keys() >= _MEMORY:
            raise SetupError("memory: the app memory is not installed: leave the option out.")
        registered = registered_tools().keys()
        if wrong := sorted(set(function_names(config.tools)) - registered):
            raise SetupError(
                f"tools: no tool {wrong[0]!r} is registered in the settings (VEL_TOOLS): give a "
                "function, or for Vel's own tools only_tools."
            )
        if wrong := sorted(set(config.only_tools or ()) - built_in_tools().keys() - registered):
            raise SetupError(f"only_tools: there is no tool {wrong[0]!r}.")
        of_features = stored_options(config)
        for item in subagents:
            if (choice := choice_of(item.model)).provider:
                checked(choice, f"The subagent {item.name}: model")
            if wrong := sorted(set(function_names(item.tools)) - known):
                raise SetupError(f"The subagent {item.name}: there is no tool {wrong[0]!r}.")
        found = cls(
            config=config,
            choice=checked(choice_of(config.model)) if needs_model else choice_of(config.model),
            toolkit=toolkit,
            subagents=subagents,
            interrupt_on={**_own_rules(toolkit), **config.interrupt_on},
            databases=_sealed(config.databases),
            options={**_checked_options(config.options), **of_features},
        )
        found._check()
        return found

    def _check(self) -> None:
        """Check everything that the agent would store.

        Raises `SetupError` with the argument's name.
        """
        try:
            options = validated_options(self.values()).model_dump(mode="json")
            rows = {name: _relation(name).fields(each) for name, each in self._own_rows().items()}
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise self._refused(f"{place}: {first['msg']}.") from None
        except InvalidRequest as error:
            raise self._refused(error.message) from None
        stored = {**options, **_joined(rows), "output_schema": ""}
        databases = tuple(self.databases)
        spec = AgentSpec(**{**stored, "name": "", "slug": "", "databases": databases})
        self._check_tools(spec)
        try:
            for check in entries("definition_checks", "DEFINITION_CHECKS"):
                check(spec)
        except InvalidRequest as error:
            raise self._refused(error.message) from None

    def _check_tools(self, spec: AgentSpec) -> None:
        """Raise `SetupError` for a named tool that other arguments disable."""
        named = [("only_tools", self.config.only_tools or (), spec)]
        for item in self.subagents:
            subagent = types.find_subagent(spec, item.name)
            child = spec if subagent is None else types.child_spec(spec, subagent)
            place = f"The subagent {item.name}: tools"
            named.append((place, function_names(item.tools), child))
        registered = registered_tools().keys()
        for place, names, having in named:
            if not (own := [name for name in names if name in built_in_tools()]):
                continue
            all_of_it = having.model_copy(update={"tools": None})
            built = build_toolset(all_of_it, has_left_out=True, more=self.toolkit.replacing)
            offered = built.tools.keys() | registered
            for name in own:
                if name not in offered:
                    raise SetupError(f"{place}: {name} {self._why_missing(name, spec, having)}.")
        for name in self.config.only_tools or ():
            if name in _PLANNING | _MEMORY and name in self._left_out:
                option = "planning" if name in _PLANNING else "memory"
                raise SetupError(f"only_tools: {name} needs {option}=True.")

    def _why_missing(self, name: str, spec: AgentSpec, having: AgentSpec) -> str:
        if (
            having is not spec
            and name in build_toolset(spec.model_copy(update={"tools": None})).tools
        ):
            return (
                "is a tool of the agent that its subagents do not have, unless you give "
                'options={"subagent_depth": 2}: leave it out'
            )
        if not self.config.sandbox_enabled and name in _EXECUTION:
            return "needs a sandbox: leave it out, or leave out sandbox=False (sandbox_enabled)"
        return "is not a tool that an agent with these options has: leave it out"

    def _refused(self, message: str) -> SetupError:
        """Return the error for a message that starts with the name of an option."""
        place, _, reason = message.partition(": ")
        option, _, inner = place.partition(".")
        if option in self.config.options:
            return SetupError(f"options: {message}")
        argument = ARGUMENTS.get(option, option)
        if argument == "model":
            name = "max_tokens" if option == "max_output_tokens" else option
            return SetupError(f"model: {name}: {reason}")
        return SetupError(f"{argument}: {inner}: {reason}" if inner else f"{argument}: {reason}")

    @property
    def _left_out(self) -> frozenset[str]:
        """Return the tools that the program disables with False."""
        left_out = frozenset() if self.config.planning else _PLANNING
        if self.config.options.get("subagent_depth") == 0:
            left_out |= inputs.FORMS.keys()
        return left_out | (frozenset() if self.config.memory else _MEMORY)

    def slug(self, owner: Any) -> str:
        return f"python-{slugify(str(owner.pk))}-{slugify(self.config.name) or 'agent'}"[:100]

    def tool_names(self) -> list[str]:
        own = [tool.name for tool in self.toolkit.main_tools]
        names = built_in_tools().keys() - self._left_out
        if self.config.profile == SANDBOX_ONLY:
            names &= toolset_for(AgentSpec(name="", slug="", profile=SANDBOX_ONLY)).tools.keys()
        else:
            names -= {COMMANDS}
        registered = set(function_names(self.config.tools))
        if self.config.only_tools is not None:
            only = set(self.config.only_tools)
            names &= only
            registered |= only & registered_tools().keys()
        return [*sorted(names), *sorted(registered), *own]

    def values(self) -> dict[str, Any]:
        """Return the values of the agent's options by name.

        Options of features that the program does not set have their defaults. Other options that
        are not in the result keep their stored values.
        """
        config, choice = self.config, self.choice
        of_features = [kind for kind in option_classes() if kind not in OPTIONS]
        form = form_of(config.output_schema)
        return {
            **{name: option_default(name) for kind in of_features for name in kind.model_fields},
            # Copy the fields with the same name in both.
            **{name: getattr(config, name) for name in option_fields() if hasattr(config, name)},
            "prompt_caching": option_default("prompt_caching"),
            **self.options,
            "provider": choice.provider,
            "model": choice.model,
            "thinking": choice.thinking,
            "effort": choice.effort,
            "max_output_tokens": choice.max_tokens or option_default("max_output_tokens"),
            "tools": self.tool_names(),
            "interrupt_on": dict(self.interrupt_on),
            "builtin_skills": config.include_builtin_skills,
            "suggest_skills": config.auto_load_skills,
            "sandbox": config.sandbox_enabled,
            "network": "full" if config.sandbox_network else "none",
            "command_timeout": None
            if config.sandbox_timeout == COMMAND_SECONDS
            else config.sandbox_timeout,
            "output_schema": form.schema if form is not None else None,
            "max_turns": config.max_steps,
        }

    def save(self, owner: Any) -> Agent:
        """Store the agent, as a new version if it has changed, and return its row.

        Call it in the transaction that starts the run. Raises `SetupError` with the argument's
        name.
        """
        try:
            return self._save(owner)
        except InvalidRequest as error:
            raise self._refused(error.message) from error

    def _save(self, owner: Any) -> Agent:
        config = self.config
        slug = self.slug(owner)
        agent = Agent.objects.select_for_update().filter(slug=slug).first()
        if agent is None:
            agent = Agent(slug=slug, owner=owner)
        if agent.owner_id != owner.pk:
            raise SetupError(f"The agent {slug!r} belongs to another user. Choose another name.")
        agent.name = config.name[:100]
        for name, value in self.values().items():
            setattr(agent, name, value)
        agent.toolkit = self.toolkit.fingerprint
        agent.everyone, agent.is_active = False, True
        if agent._state.adding and self.databases:
            agent.save()  # the databases refer to it; `save_agent` makes its version
        return save_agent(agent, by_id=owner.pk, related=self._related(agent))

    def _related(self, agent: Agent) -> dict[str, list[Any]]:
        """Return the agent's own rows of features. They replace those of its last start."""
        related: dict[str, list[Any]] = {relation.name: [] for relation in relations()}
        if self.databases:
            related["databases"] = [
                self._database(agent, name, url) for name, url in self.databases.items()
            ]
        return related | self._own_rows()

    def _database(self, agent: Agent, name: str, url: Any) -> Any:
        writable = not self.config.database_read_only
        limits = self.config.database_limits.get(name)
        try:
            return _relation("databases").own_row(
                agent, name, url, writable=writable, limits=limits
            )
        except InvalidRequest as error:
            raise SetupError(f"databases: {name}: {error.message}") from error

    def _own_rows(self) -> dict[str, list[Any]]:
        """Return the rows of the subagents, which are not stored yet."""
        if not self.subagents:
            return {}
        relation = _relation("subagents")
        assert isinstance(relation, OwnRows)
        return {relation.name: relation.from_file([*map(self._subagent, self.subagents)])}

    def _subagent(self, item: SubagentConfig) -> dict[str, Any]:
        choice = choice_of(item.model)
        own = [tool.name for tool in self.toolkit.of_subagents.get(item.name, ())]
        names = [*function_names(item.tools), *own]
        return {
            "name": item.name,
            "description": item.description,
            "system_prompt": item.system_prompt or "",
            "provider": choice.provider,
            "model": choice.model,
            "tools": names or None,
            "skills": list(item.skills),
            "max_turns": item.max_turns,
            "read_only": item.read_only,
        }


Config = TypeVar("Config", DeepAgentConfig, SubagentConfig)


def _without_aliases(config: Config) -> Config:
    """Return a copy in which aliases of tools are replaced by the names of the tools."""
    names = tool_aliases()
    found = copy(config)
    if isinstance(found, SubagentConfig):
        found.tools = [
            names.get(item, item) if isinstance(item, str) else item for item in found.tools
        ]
        return found
    if found.only_tools is not None:
        found.only_tools = [names.get(item, item) for item in found.only_tools]
    found.interrupt_on = {names.get(tool, tool): rule for tool, rule in found.interrupt_on.items()}
    if len(found.interrupt_on) < len(config.interrupt_on):
        twice = sorted(names.keys() & config.interrupt_on.keys())
        raise SetupError(f"interrupt_on: {twice[0]} is another name of {names[twice[0]]}.")
    return found


def _joined(fields: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for each in fields.values() for name, value in each.items()}


def check_names(toolkit: Toolkit, subagents: tuple[SubagentConfig, ...]) -> None:
    """Raise `SetupError` unless names of tools are unique and differ from Vel's own.

    Names of middleware must be unique and not too long.
    """
    seen: set[str] = set()
    taken = known_tool_names() | tool_aliases().keys()
    for tool in toolkit.main_tools:
        if tool.name in taken:
            raise SetupError(f"The tool {tool.name!r} has the name of one of Vel's: rename it.")
        if tool.name in seen:
            raise SetupError(f"Two tools are called {tool.name!r}: rename one.")
        seen.add(tool.name)
    for item in subagents:
        for tool in toolkit.of_subagents.get(item.name, ()):
            if tool.name in taken:
                raise SetupError(f"The tool {tool.name!r} has the name of one of Vel's: rename it.")
    names = [member.name for member in toolkit.members]
    for name in names:
        if len(name) > MIDDLEWARE_NAME:
            raise SetupError(
                f"The name of a middleware may have {MIDDLEWARE_NAME} characters, and "
                f"{name[:40]!r}… has {len(name)}: shorten it."
            )
        if names.count(name) > 1:
            raise SetupError(f"Two middleware are called {name!r}: rename one.")


def _check_routes(toolkit: Toolkit) -> None:
    """Raise `SetupError` if the program's backend has files at a path of Vel."""
    routes = () if toolkit.files is None else toolkit.files.routes
    for root in (mount.root for mount in mounts()):
        if wrong := next((path for path in routes if is_within(path, root)), None):
            raise SetupError(f"backend: the route {wrong} is in {root}, which Vel has: rename it.")


def _checked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked options that have no argument of their own. Raises `SetupError`."""
    try:
        return checked_options(options)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        arguments = {field.name for field in fields(DeepAgentConfig)} | ARGUMENTS.keys()
        known = ", ".join(option_fields().keys() - arguments) or "none"
        message = (
            f"there is no such option here; there are: {known}."
            if first["type"] == "extra_forbidden"
            else f"{first['msg']}."
        )
        raise SetupError(f"options: {name}: {message}") from None
    except (TypeError, ValueError):
        raise SetupError("options must contain JSON data only.") from None


def _own_rules(toolkit: Toolkit) -> dict[str, bool]:
    """Return rules that allow the program's own tools, unless a tool requires approval."""
    return {tool.name: bool(tool.requires_approval) for tool in toolkit.all_tools}


def _relation(name: str) -> AgentRelation:
    """Return the relation `name`. Raises `SetupError` if its feature is not installed."""
    relation = relation_named(name)
    if relation is None:
        raise SetupError(f"{name}: the feature `{name}` is not installed here.")
    return relation


def _sealed(databases: Mapping[str, str]) -> dict[str, Any]:
    sealed = {}
    for name, url in databases.items():
        try:
            sealed[name] = _relation("databases").seal(name, url)
        except InvalidRequest as error:
            reason = error.message.removeprefix("url: ")
            raise SetupError(f"databases: {name}: {reason}") from None
    return sealed
