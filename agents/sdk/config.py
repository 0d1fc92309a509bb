"""The configuration of an agent in a program."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, get_args, runtime_checkable

from agents.custom.base_middleware import Middleware
from agents.custom.hooks import HOOKS, overrides
from agents.features.installed import installed_features
from agents.kernel.options import AgentOptions
from agents.kernel.programs import OptionArguments, ProgramOptions, ProgramPart
from agents.kernel.session_state import SessionAgent
from agents.sdk import arguments
from agents.sdk.answer_form import form_of
from agents.sdk.errors import SetupError
from agents.sdk.model_config import Model, checked_model, checked_model_of_subagent
from agents.sdk.option_values import (
    check_file_rules,
    check_options,
    check_prompt,
    check_toolbox,
    is_agent_option,
)
from agents.spec import SANDBOX_ONLY, AgentSpec, InterruptRule, SubagentSpec
from sandbox.policy import MAX_TIMEOUT


class DefaultDirectory(str):
    """The default working directory, which the caller has not chosen. Only new sessions use it."""

    __slots__ = ()


DEFAULT_SKILLS = "./skills"
DEFAULT_WORKSPACE = DefaultDirectory("./workspace")
CHECKPOINTS = 5
COMMAND_SECONDS = 30
CONCURRENT = 5
LEAST_COST = 0.000001
"""The minimum cost limit in US dollars. A smaller one would be stored as zero."""
OF_EVERY_AGENT = AgentSpec(name="", slug="")
"""The default values of the options."""
PROFILES: tuple[str, ...] = get_args(AgentSpec.model_fields["profile"].annotation)


@dataclass
class SubagentConfig:
    """A subagent to which an agent can delegate tasks.

    `tools` are functions, tools or names of tools; without any, the subagent has the agent's tools.
    `model` replaces the agent's model: a name or `{"provider", "model"}`, without the other options
    of a model. `skills` are loaded at the start, and no other skills are available. With
    `read_only` the subagent can read the agent's files, but not change them, neither with tools nor
    with commands.

    >>> market = SubagentConfig("market", "Looks for prices.", tools=["read_file", "grep"])
    >>> agent = create_deep_agent(subagents=[market])
    """

    name: str
    description: str
    system_prompt: str | None = None
    tools: list[Any] = field(default_factory=list)
    model: Model = None
    skills: list[str] = field(default_factory=list)
    max_turns: int = 50
    read_only: bool = False

    def __post_init__(self) -> None:
        arguments.check_texts(self, ("name", "description"))
        arguments.check_texts(self, ("system_prompt",), or_none=True)
        what = f"The subagent {self.name!r}"
        self.model = checked_model_of_subagent(self.model, what)
        arguments.check_number(f"{what}: max_turns", self.max_turns, 1)
        arguments.check_flags(self, ("read_only",))
        self.tools = checked_tools(f"{what}: tools", self.tools)
        self.skills = arguments.listed_texts(f"{what}: skills", self.skills, "names of skills")
        stored = {
            "name": self.name,
            "description": " ".join(self.description.split()),
            "system_prompt": self.system_prompt or "",
            "skills": self.skills,
            "read_only": self.read_only,
            "max_turns": self.max_turns,
        }
        arguments.check_fields(SubagentSpec, stored, what)
        check_prompt(f"{what}: system_prompt", self.system_prompt or "")

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "skills": list(self.skills)}


@runtime_checkable
class AgentTypes(Protocol):
    """The methods of `AgentRegistry` that a config needs. That class depends on this module."""

    def subagents(self, prompt: str = "") -> Sequence[SubagentConfig]:
        """Return the types as subagents of an agent with the prompt `prompt`."""

    def checked_by(self, check: Callable[[Sequence[SubagentConfig]], None]) -> None:
        """Call the method `check` with all subagents before a type is added."""


_FLAGS = (
    "include_builtin_skills",
    "auto_load_skills",
    "sandbox_enabled",
    "sandbox_network",
    "database_read_only",
    "read_only",
    "planning",
    "memory",
    "background_subagents",
)
_OF_FEATURES = (
    "max_tokens",
    "max_cost",
    "fallbacks",
    "guardrails",
    "hooks",
    "tool_retries",
    "skill_mode",
    "max_concurrent_subagents",
    "databases",
    "database_limits",
)
_OF_SANDBOX: dict[str, Any] = {
    "sandbox_network": False,
    "sandbox_timeout": COMMAND_SECONDS,
    "toolbox": "",
    "outputs_dir": None,
    "sandbox_allow_write": (),
    "sandbox_protect": (),
}
"""Arguments that have no effect without a sandbox, with their defaults."""


@dataclass
class DeepAgentConfig:
    """The arguments of `create_deep_agent`. Times are in seconds.

    `tools` are functions, `ToolSpec`s, or names of tools that are registered in the settings
    (`VEL_TOOLS`); `middleware` are instances of `BaseMiddleware`. With `sandbox_enabled` False,
    files are in the database and no commands run. With a `sandbox_working_dir` of None, Vel keeps a
    directory for each session. A session keeps its directory: if you name another one, its next run
    is refused. `sandbox_timeout` is the limit of commands that name no other; with the default, 30,
    each tool has its own limit. `interrupt_on` names tools that require approval: True, False, or a
    rule (docs/guides/policy.md). `persistence_path` is a SQLite file; None is the project's
    database or, in a script, a temporary one.

    `checkpoint_interval` is accepted and has no effect: every step is stored. With
    `auto_load_skills`, the model gets the names of skills that match a message.

    >>> config = DeepAgentConfig(max_steps=10, interrupt_on={"execute": True}, read_only=True)
    >>> DeepAgent(config).config.max_steps
    10
    """

    model: Model = field(default=None, repr=False)
    tools: list[Any] = field(default_factory=list)
    skill_dirs: Sequence[str | Path] | None = None
    include_builtin_skills: bool = True
    auto_load_skills: bool = True
    sandbox_enabled: bool = True
    sandbox_working_dir: str | Path | None = DEFAULT_WORKSPACE
    sandbox_network: bool = False
    sandbox_timeout: int = COMMAND_SECONDS
    databases: Mapping[str, str] = field(default_factory=dict, repr=False)
    database_read_only: bool = True
    database_limits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """`{"query_timeout", "row_limit"}` by the name of the database.

    They limit the time of a statement in seconds (default 30) and the rows of a result (10,000).
    """
    subagents: list[SubagentConfig] = field(default_factory=list)
    """Dictionaries with the fields of `SubagentConfig` are accepted, too."""
    agent_types: AgentTypes | None = None
    """An `AgentRegistry`: its types are subagents, too, also those that are registered later."""
    max_concurrent_subagents: int = CONCURRENT
    interrupt_on: Mapping[str, Any] = field(default_factory=dict)
    persistence_path: str | Path | None = None
    max_steps: int = 50
    checkpoint_interval: int = CHECKPOINTS

    name: str = "deep-agent"
    """The name of the agent. Its sessions belong to this name: use the same one after a restart."""
    profile: str = OF_EVERY_AGENT.profile
    """`full`, or `sandbox_only` for an agent that only runs commands in the sandbox.

    See docs/guides/sandbox-only.md.
    """
    system_prompt: str = OF_EVERY_AGENT.system_prompt
    middleware: list[Any] = field(default_factory=list)
    only_tools: list[str] | None = None
    """The only tools of Vel that the agent has. None: all tools that the other options allow."""
    read_only: bool = OF_EVERY_AGENT.read_only
    """Whether the agent and its subagents cannot change files or write to a database.

    This applies to tools and to commands.
    """
    planning: bool = True
    memory: bool = False
    """Whether the agent has the memory tools (docs/guides/memory.md)."""
    skill_mode: str = "tool_result"
    """Where the instructions of a loaded skill are: `tool_result` or `system_prompt`."""
    background_subagents: bool = False
    toolbox: str = OF_EVERY_AGENT.toolbox
    output_schema: Any = None
    """The form of the answers: a JSON Schema, with which `run` returns JSON text, or a class.

    With a pydantic model, a dataclass or a TypedDict, `run` returns an instance.
    """
    max_tokens: int | None = None
    max_cost: float | None = None
    max_seconds: int | None = None
    fallbacks: list[Mapping[str, str]] = field(default_factory=list)
    """Up to three models, `{"provider", "model"}`, for the time when the agent's model is down.

    See docs/guides/fallbacks.md. Their API keys are those of the environment.
    """
    guardrails: list[Any] = field(default_factory=list)
    """The guardrails of the agent: `Guardrail` classes or instances, or names.

    Names are those of guardrails that come with Vel or are registered in the settings. See
    docs/guides/guardrails.md.
    """
    program_files: Any = field(default=None, repr=False)
    """The agent's files, as `FilesystemMiddleware(backend)` sets them."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of an agent's definition by name, and options of features.

    The fields are those of an agent file (docs/guides/agent-files.md).
    """
    hooks: list[Any] = field(default_factory=list)
    """`Hooks` classes or instances. Vel calls their methods during the agent's runs."""
    tool_retries: list[Mapping[str, Any]] = field(default_factory=list)
    """Read-only calls to repeat after a timeout or a lost connection.

    Each item is `{"tool", "attempts", "backoff"}`.
    """
    user: Any = None
    """The owner of the runs: a user of the project, or a user's name."""
    outputs_dir: str | Path | None = None
    """The directory for copies of the files in /sandbox/outputs at the end of each run.

    None: ./outputs in a script; a project keeps the files in its data directory.
    """
    sandbox_allow_write: Sequence[str] = ()
    """Protected files of the working directory that the agent may change, such as `.github`.

    See docs/guides/own-directory.md.
    """
    sandbox_protect: Sequence[str] = ()
    """Additional files of the working directory that the agent must not change."""

    def __post_init__(self) -> None:
        """Check the arguments. Raises `SetupError` with the name of the argument."""
        if not isinstance(self.name, str) or not 0 < len(self.name.strip()) <= 60:
            raise SetupError("name: the name of an agent has 1 to 60 characters.")
        arguments.check_flags(self, _FLAGS)
        arguments.check_texts(self, ("system_prompt", "skill_mode", "toolbox"))
        arguments.check_paths(self, ("sandbox_working_dir", "persistence_path", "outputs_dir"))
        if not (self.user is None or isinstance(self.user, str) or hasattr(self.user, "pk")):
            raise arguments.wrong("user", "a user of the project, a name or None", self.user)
        if self.profile not in PROFILES:
            raise arguments.wrong("profile", " or ".join(PROFILES), self.profile)
        if self.toolbox:
            check_toolbox(self.toolbox)
        self._check_lists()
        self.model = checked_model(self.model)
        if self.program_files is not None and not hasattr(self.program_files, "opened"):
            raise SetupError("program_files: give middleware=[FilesystemMiddleware(backend)].")
        self._check_numbers()
        form_of(self.output_schema)
        check_prompt("system_prompt", self.system_prompt)
        hooked = [item for item in self.middleware if any(overrides(item, hook) for hook in HOOKS)]
        checked("middleware", hooked)
        for name in _OF_FEATURES:
            setattr(self, name, checked(name, getattr(self, name)))
        self._check_contradictions()
        if self.checkpoint_interval != CHECKPOINTS:
            warnings.warn("checkpoint_interval does nothing: every step is stored.", stacklevel=4)

    def _check_lists(self) -> None:
        self.tools = checked_tools("tools", self.tools)
        self.middleware = arguments.listed("middleware", self.middleware, "middleware")
        for item in self.middleware:
            if isinstance(item, type) or not isinstance(item, Middleware):
                raise arguments.wrong("middleware", "instances of BaseMiddleware", item)
        self.subagents = checked_subagents(self.subagents)
        if self.agent_types is not None:
            self._check_types(self.agent_types)
        if self.skill_dirs is not None:
            self.skill_dirs = arguments.listed("skill_dirs", self.skill_dirs, "directories")
            for item in self.skill_dirs:
                if not isinstance(item, str | os.PathLike) or not str(item):
                    raise arguments.wrong("skill_dirs", "a list of paths", item)
        if self.only_tools is not None:
            names = arguments.listed_texts("only_tools", self.only_tools, "names of tools")
            self.only_tools = names
        for name in ("sandbox_allow_write", "sandbox_protect"):
            arguments.listed_texts(name, getattr(self, name), "patterns of files")
        check_file_rules(self.sandbox_allow_write, self.sandbox_protect)
        self.databases = arguments.named("databases", self.databases, '{"shop": URL}')
        for name, url in self.databases.items():
            if not isinstance(url, str) or not url:
                raise SetupError(f"databases: {name}: the URL must be a text.")
        self.interrupt_on = checked_rules(self.interrupt_on)
        self.options = arguments.named("options", self.options, '{"general_subagent": False}')
        check_options(DeepAgentConfig, self.options, _checkable())

    def _check_types(self, types: AgentTypes) -> None:
        if isinstance(types, type) or not isinstance(types, AgentTypes):
            raise arguments.wrong("agent_types", "an AgentRegistry or None", types)
        names = {item.name for item in types.subagents()}
        if twice := next((item.name for item in self.subagents if item.name in names), None):
            raise SetupError(f"subagents: {twice!r} is also a type of agent_types: rename one.")

    def _check_numbers(self) -> None:
        if self.sandbox_timeout is not None:
            most = int(MAX_TIMEOUT)
            arguments.check_number("sandbox_timeout", self.sandbox_timeout, 1, most)
        for name in ("max_steps", "max_concurrent_subagents", "checkpoint_interval"):
            arguments.check_number(name, getattr(self, name), 1)
        _positive_or_none("max_tokens", self.max_tokens, whole=True)
        _positive_or_none("max_cost", self.max_cost)
        if self.max_cost is not None and self.max_cost < LEAST_COST:
            raise SetupError(f"max_cost must be at least {LEAST_COST:f}, got {self.max_cost!r}.")
        _positive_or_none("max_seconds", self.max_seconds, whole=True)
        if self.max_seconds is not None:
            arguments.check_number("max_seconds", self.max_seconds, 1)

    def _check_contradictions(self) -> None:
        if not self.sandbox_enabled:
            given = [
                name
                for name, default in _OF_SANDBOX.items()
                if getattr(self, name) not in (default, None, [])
            ]
            directory = self.sandbox_working_dir
            if directory is not None and not isinstance(directory, DefaultDirectory):
                given.insert(0, "sandbox_working_dir")
            if given:
                raise SetupError(
                    f"{given[0]} has no effect without a sandbox: leave it out, or leave out "
                    "sandbox=False (sandbox_enabled)."
                )
        if self.profile == SANDBOX_ONLY:
            self._check_sandbox_only()
        for name in ("sandbox_allow_write", "sandbox_protect"):
            if getattr(self, name) and self.sandbox_working_dir is None:
                raise SetupError(
                    f"{name} is about the files of your own directory: name one as "
                    "sandbox_working_dir."
                )
        if unknown := sorted(self.database_limits.keys() - self.databases.keys()):
            raise SetupError(f"database_limits: {unknown[0]} is not among the databases.")
        if self.read_only and not self.database_read_only:
            raise SetupError(
                "database_read_only=False contradicts read_only=True, with which the agent "
                "writes to no database: leave one of them out."
            )
        if self.read_only and self.sandbox_allow_write:
            raise SetupError(
                "sandbox_allow_write contradicts read_only=True, with which the agent changes no "
                "file: leave one of them out."
            )

    def _check_sandbox_only(self) -> None:
        without = {
            "sandbox=False": not self.sandbox_enabled,
            "databases": bool(self.databases),
            "memory=True": self.memory,
            "background_subagents=True": self.background_subagents,
        }
        for option, is_given in without.items():
            if is_given:
                raise SetupError(
                    f"{option} contradicts profile='{SANDBOX_ONLY}': these agents work only with "
                    "commands in the sandbox. Remove one of them."
                )

    def skill_directories(self) -> tuple[str, ...]:
        """Return the absolute paths of the directories of skills.

        A directory that is missing is omitted if it is ./skills. Without `skill_dirs`, ./skills is
        also omitted, with a warning, if the agent can write there.

        Raises `SetupError` for another missing directory.
        """
        found: dict[str, None] = {}
        for given in [DEFAULT_SKILLS] if self.skill_dirs is None else self.skill_dirs:
            place = Path(given).expanduser().resolve()
            is_default = str(given) == DEFAULT_SKILLS
            if not place.is_dir():
                if is_default:
                    continue
                raise SetupError(f"skill_dirs: {given} is no directory.")
            if self.skill_dirs is None and self._writes_in(place):
                warnings.warn(
                    f"The skills of {place} are not used: the agent writes there. Name them, "
                    f"skill_dirs=['{DEFAULT_SKILLS}'], and it uses them and cannot change them; "
                    "or leave them out with skill_dirs=[].",
                    stacklevel=2,
                )
                continue
            found[str(place)] = None
        return tuple(found)

    def _writes_in(self, place: Path) -> bool:
        """Return whether `place` is in the working directory."""
        directory = self.sandbox_working_dir if self.sandbox_enabled else None
        return directory is not None and place.is_relative_to(Path(directory).resolve())


def checked_subagents(given: Any) -> list[SubagentConfig]:
    """Return the argument `subagents` with dictionaries as `SubagentConfig`.

    Raises `SetupError`.
    """
    found = [
        arguments.instance_of(SubagentConfig, item, f"subagents: number {at + 1}")
        for at, item in enumerate(arguments.listed("subagents", given, "subagents"))
    ]
    names = [item.name for item in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SetupError(f"subagents: {twice!r} is given twice.")
    return found


def _checkable() -> list[type[AgentOptions]]:
    return [one.kind for one in program_options() if isinstance(one, OptionArguments)]


def belongs_in_options(name: str) -> bool:
    """Return whether `name` is an option of agents that `DeepAgentConfig.options` accepts."""
    return is_agent_option(DeepAgentConfig, name, _checkable())


def config_of(given: Any) -> DeepAgentConfig:
    """Return `given` as a config: a dictionary has the fields, and None is the default config.

    Raises `SetupError`.
    """
    if given is None:
        return DeepAgentConfig()
    config: DeepAgentConfig = arguments.instance_of(DeepAgentConfig, given, "config")
    return config


def checked_tools(name: str, given: Any) -> list[Any]:
    found = arguments.listed(name, given, "functions, tools and names of tools")
    for at, item in enumerate(found):
        if not callable(item) and not (isinstance(item, str) and item):
            what = "a function, a tool or the name of a tool"
            raise arguments.wrong(f"{name}: number {at + 1}", what, item)
    return found


def checked_rules(given: Any) -> dict[str, Any]:
    """Return the argument `interrupt_on` as JSON data. Raises `SetupError`."""
    found = arguments.named("interrupt_on", given, '{"execute": True}')
    for tool, rule in found.items():
        what = f"interrupt_on: {tool}"
        if isinstance(rule, InterruptRule):
            found[tool] = rule.model_dump(mode="json")
        elif isinstance(rule, Mapping):
            arguments.check_fields(InterruptRule, rule, what)
        elif not isinstance(rule, bool):
            raise arguments.wrong(what, "True, False or a rule (docs/guides/policy.md)", rule)
    return found


def _positive_or_none(name: str, value: Any, *, whole: bool = False) -> None:
    """Raise `SetupError` unless `value` is a positive number or None, which is no limit."""
    if value is not None:
        arguments.check_positive(name, value, whole=whole, expected=", or None")


def function_names(tools: Sequence[Any]) -> list[str]:
    """Return the items of `tools` that are names. The others are functions and `ToolSpec`s."""
    return [item for item in tools if isinstance(item, str)]


def functions(tools: Sequence[Any]) -> list[Callable[..., Any]]:
    return [item for item in tools if not isinstance(item, str)]


@cache
def program_options() -> tuple[ProgramOptions, ...]:
    """Return the program options of all installed features."""
    return tuple(
        options
        for path in installed_features()
        if find_spec(f"{path}.program") is not None
        for options in import_module(f"{path}.program").PROGRAM_OPTIONS
    )


def checked(name: str, value: Any) -> Any:
    """Return the value of an argument in the form in which the config stores it.

    Raises `SetupError`.
    """
    for options in program_options():
        if name in options.names:
            try:
                return options.checked(name, value)
            except ValueError as error:
                raise SetupError(_naming(name, str(error))) from None
    if value and value != _default(name):
        raise SetupError(f"{name}: the feature that has this option is not installed here.")
    return value


def _default(name: str) -> Any:
    return next((one.default for one in fields(DeepAgentConfig) if one.name == name), None)


def _naming(name: str, message: str) -> str:
    return message if message.startswith(name) else f"{name}: {message}"


def parts_of(config: Any) -> tuple[ProgramPart, ...]:
    """Return the program's values for each feature."""
    return tuple(options.part(_values(options, config)) for options in program_options())


def stored_options(config: Any) -> dict[str, Any]:
    """Return the options that the agent stores. Raises `SetupError` for unusable values."""
    stored: dict[str, Any] = {}
    for options in program_options():
        try:
            stored |= options.stored(_values(options, config))
        except ValueError as error:
            raise SetupError(str(error)) from None
    return stored


def check_for_agent(values: Mapping[str, Any], agent: SessionAgent) -> None:
    """Check the values of a config against the stored rows. Raises `SetupError`."""
    for options in program_options():
        try:
            options.check_agent({name: values[name] for name in options.names}, agent)
        except ValueError as error:
            raise SetupError(str(error)) from None


def _values(options: ProgramOptions, config: Any) -> Mapping[str, Any]:
    return {name: getattr(config, name) for name in options.names}
