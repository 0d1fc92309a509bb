"""`VelHarness`: an agent with the stream of the Vercel AI SDK, and agent types by name."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from agents.agent_files.reading import BadFile, read_document
from agents.events.projections.ui import DEFAULT_VERSION, DIALECTS
from agents.sdk import arguments
from agents.sdk.agent_registry import AgentConfig, AgentRegistry, checked_types
from agents.sdk.config import DeepAgentConfig, DefaultDirectory, belongs_in_options
from agents.sdk.deep_agent import DeepAgent
from agents.sdk.errors import SetupError
from agents.sdk.model_config import Model
from agents.sdk.streaming.agent_file import AgentFile
from agents.sdk.streaming.continued import Continued
from agents.sdk.streaming.stream import StreamMode
from agents.spec import SANDBOX_ONLY

RESEARCH_PROMPT = """\
You research a question until you can answer it: list the points to find out first, look in \
several places, delegate parallel searches, note each finding with its source, and separate \
certain from uncertain results. End with a report."""
CODING_PROMPT = """\
You work on the code in your working directory: read it before you change it, make small \
changes that fit it, run its tests, and report your changes and how you checked them."""


@dataclass
class HarnessConfig:
    """The configuration of a `VelHarness`. `options` are other fields of `DeepAgentConfig`.

    A session keeps its directory: with another `working_directory`, its next run is refused. With
    None, a session continues in its own directory, and a new session uses the current directory.
    With `sandbox` False there is no directory. `database` True only requires that `databases` has
    URLs.

    >>> config = HarnessConfig(max_turns=20, custom_agents={"audit": {"tools": ["grep"]}})
    >>> HarnessConfig.from_dict({"maxTurns": 20}).max_turns
    20
    """

    model: Model = field(default=None, repr=False)
    skill_dirs: Sequence[str | Path] | None = None
    custom_agents: Mapping[str, AgentConfig | Mapping[str, Any]] = field(default_factory=dict)
    """Agent types by name. Dictionaries with the fields of `AgentConfig` are accepted, too."""
    system_prompt: str | None = None
    max_turns: int = 100
    working_directory: str | Path | None = None
    sandbox: bool = True
    database: bool = False
    planning: bool = True
    memory: bool = False
    databases: Mapping[str, str] = field(default_factory=dict, repr=False)
    guardrails: list[Any] = field(default_factory=list)
    hooks: list[Any] = field(default_factory=list)
    tool_retries: list[Mapping[str, Any]] = field(default_factory=list)
    tools: list[Any] = field(default_factory=list)
    middleware: list[Any] = field(default_factory=list)
    interrupt_on: Mapping[str, Any] = field(default_factory=dict)
    persistence_path: str | Path | None = None
    name: str = "vel-harness"
    ai_sdk_version: int = DEFAULT_VERSION
    """The version of the AI SDK for the parts of the streams: 5, 6 or 7."""
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the arguments. Raises `SetupError` with the name of the argument."""
        self.custom_agents = checked_types(self.custom_agents)
        arguments.check_flags(self, ("sandbox", "database", "planning", "memory"))
        arguments.check_texts(self, ("system_prompt",), or_none=True)
        arguments.check_number("max_turns", self.max_turns, 1)
        arguments.check_paths(self, ("working_directory",))
        if self.ai_sdk_version not in DIALECTS or type(self.ai_sdk_version) is not int:
            versions = ", ".join(map(str, sorted(DIALECTS)))
            raise arguments.wrong("ai_sdk_version", f"one of {versions}", self.ai_sdk_version)
        if self.working_directory is not None and not self.sandbox:
            raise SetupError(
                "working_directory has no effect without a sandbox: leave it out, or leave out "
                "sandbox=False."
            )
        options = arguments.named("options", self.options, '{"read_only": True}')
        self.options = _with_agent_options(
            arguments.in_snake_case(DeepAgentConfig, options, "options")
        )
        arguments.known_fields(DeepAgentConfig, self.options, "options")
        usual = HarnessConfig() if self.options else self
        for name in (one.name for one in fields(self) if one.name != "options"):
            argument = _OF_AGENT.get(name, name)
            if argument in self.options and getattr(self, name) != getattr(usual, name):
                raise SetupError(f"options: {argument} contradicts {name}: leave one out.")
        with arguments.renamed(self.argument_names()):
            self.agent_config()  # it checks the other arguments

    def argument_names(self) -> dict[str, str]:
        """Return the names of the fields here by those of the agent's arguments, for errors."""
        return {name: one for one, name in _OF_AGENT.items() if name not in self.options}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> HarnessConfig:
        """Return the config for a dictionary, whose names can be in camelCase.

        Raises `SetupError` for an unknown name or an invalid value.
        """
        named = arguments.named("config", given, '{"max_turns": 20}')
        values = arguments.in_snake_case(cls, named, "config")
        known = {one.name for one in fields(cls)}
        for name in sorted(values.keys() - known):
            (plain,) = arguments.in_snake_case(DeepAgentConfig, {name: None}, "config")
            known_there = plain in {one.name for one in fields(DeepAgentConfig)}
            if known_there or belongs_in_options(plain):
                raise SetupError(f"There is no setting {plain!r}: give it in options.")
            raise SetupError(f"There is no setting {name!r}; {', '.join(sorted(known))} are.")
        return cls(**values)

    @classmethod
    def from_file(cls, path: str | Path) -> HarnessConfig:
        """Return the config in a YAML or JSON file, whose names can be in camelCase.

        Relative paths in the file start at the current directory. Raises `SetupError`; for a file
        that is not valid YAML or JSON, with the line.
        """
        return cls.from_dict(_data_of(path))

    def agent_config(self) -> DeepAgentConfig:
        """Return the config of the harness's agent. Raises `SetupError`."""
        if self.database and not self.databases:
            raise SetupError("database=True: say which, as databases={name: url}.")
        return DeepAgentConfig(
            **{
                "name": self.name,
                "model": self.model,
                "skill_dirs": self.skill_dirs,
                "system_prompt": self.system_prompt or "",
                "max_steps": self.max_turns,
                "sandbox_enabled": self.sandbox,
                "sandbox_working_dir": self._directory(),
                "planning": self.planning,
                "memory": self.memory,
                "databases": self.databases,
                "guardrails": self.guardrails,
                "hooks": self.hooks,
                "tool_retries": self.tool_retries,
                "tools": self.tools,
                "middleware": self.middleware,
                "interrupt_on": self.interrupt_on,
                "persistence_path": self.persistence_path,
                "agent_types": AgentRegistry(self.custom_agents) if self.custom_agents else None,
                "background_subagents": self.options.get("profile") != SANDBOX_ONLY,
                **self.options,
            }
        )

    def _directory(self) -> str:
        if self.working_directory is None:
            return DefaultDirectory(Path.cwd())
        return str(Path(self.working_directory).expanduser().absolute())


_OF_AGENT = {
    "custom_agents": "agent_types",
    "max_turns": "max_steps",
    "sandbox": "sandbox_enabled",
    "working_directory": "sandbox_working_dir",
}
"""The fields that have another name in `DeepAgentConfig`."""


def _with_agent_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return `given` with its options of agents in its item `options`. Raises `SetupError`."""
    of_agent = {name: value for name, value in given.items() if belongs_in_options(name)}
    found = {name: value for name, value in given.items() if name not in of_agent}
    if of_agent:
        inner = arguments.named("options", found.get("options", {}), '{"general_subagent": False}')
        if twice := sorted(inner.keys() & of_agent.keys()):
            raise SetupError(f"options: {twice[0]} is given twice: leave one out.")
        found["options"] = {**inner, **of_agent}
    return found


def _data_of(path: str | Path) -> dict[str, Any]:
    """Return the data of a YAML or JSON file. Raises `SetupError`."""
    if not isinstance(path, str | Path) or not str(path):
        raise arguments.wrong("path", "the path of a YAML or JSON file", path)
    try:
        return read_document(Path(path).expanduser().read_text("utf-8")).data
    except OSError as error:
        raise SetupError(f"path: {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SetupError(f"path: {path} is not UTF-8.") from None
    except BadFile as error:
        raise SetupError(f"{path}: {error}") from None


class VelHarness:
    """An agent that streams the parts of the Vercel AI SDK.

    `agent` is its `DeepAgent`, and `agents` has its agent types.

    >>> harness = VelHarness(model=scripted_model(["Hello."]), sandbox=False)
    >>> asyncio.run(harness.run("Hi"))
    'Hello.'
    >>> harness.list_agent_types()
    ['default', 'explore', 'plan']
    """

    def __init__(
        self, config: HarnessConfig | Mapping[str, Any] | None = None, **given: Any
    ) -> None:
        """Create a harness. Fields of `HarnessConfig` in `given` replace those of `config`.

        `config` can be a dictionary of fields. Raises `SetupError` for an invalid option.
        """
        self.config = _merged(config, given)
        self._mode = StreamMode.of_ai_sdk(self.config.ai_sdk_version)
        names = self.config.argument_names()
        with arguments.renamed(names):
            self.agent = DeepAgent(self.config.agent_config())
        self.agent.name_arguments(names)
        self.agents = self.agent.agent_types

    async def run(
        self,
        message: str,
        session_id: str | None = None,
        context: Mapping[str, Any] | None = None,
        *,
        queue: bool = False,
    ) -> Any:
        """Work on `message` and return the final answer, as `DeepAgent.run` does."""
        return await self.agent.run(message, session_id, context, queue=queue)

    async def run_stream(
        self,
        message: str,
        session_id: str | None = None,
        context: Mapping[str, Any] | None = None,
        *,
        queue: bool = False,
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the parts of the AI SDK's UI message stream, as the REST API does.

        A part is, for example, `{"type": "text-delta", "id", "delta"}`. The stream ends as that of
        `DeepAgent.run_stream` does. A failure is a part and also an exception.
        """
        events = self.agent.run_stream(message, session_id, self._mode, context, queue=queue)
        async with aclosing(events) as parts:
            async for part in parts:
                yield part

    def resume(
        self, session_id: str | None = None, modified_state: Any = None
    ) -> Continued[dict[str, Any], Any]:
        """Continue a run as `DeepAgent.resume` does.

        `async for` yields the parts of `run_stream`.
        """
        return self.agent.resume(session_id, modified_state, self._mode)

    def reject(
        self, session_id: str | None = None, reason: str = ""
    ) -> Continued[dict[str, Any], None]:
        """Reject requests as `DeepAgent.reject` does.

        `async for` yields the parts of `run_stream`.
        """
        return self.agent.reject(session_id, reason, self._mode)

    async def files(self, session_id: str | None = None) -> list[AgentFile]:
        """Return the files that a session's agent has written for you: see `DeepAgent.files`.

        None means the last session. Raises `NotFound` for an unknown session, and `UnknownName` if
        there was no session.
        """
        return await self.agent.files(session_id)

    def register_agent(self, agent_id: str, config: AgentConfig | Mapping[str, Any]) -> None:
        """Add or replace an agent type for delegation, from the next message on.

        Raises `SetupError` for an invalid type, and then changes nothing.
        """
        self.agents.register(agent_id, config)

    def list_agent_types(self) -> list[str]:
        return self.agents.list()

    def get_state(self, session_id: str | None = None) -> dict[str, Any]:
        """Return the state of a session, as `DeepAgent.get_state` does."""
        return self.agent.get_state(session_id)

    def load_state(self, state: Mapping[str, Any], session_id: str | None = None) -> None:
        """Restore the state of a session, as `DeepAgent.load_state` does."""
        self.agent.load_state(state, session_id)

    def close(self) -> None:
        """Close the agent, as `DeepAgent.close` does."""
        self.agent.close()

    async def aclose(self) -> None:
        await self.agent.aclose()

    async def __aenter__(self) -> VelHarness:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def create_harness(
    config: HarnessConfig | Mapping[str, Any] | None = None, **given: Any
) -> VelHarness:
    """Return a harness for a config, with the fields in `given` replaced.

    >>> create_harness({"name": "desk"}, max_turns=20).config.name
    'desk'
    """
    return VelHarness(config, **given)


def _merged(
    config: HarnessConfig | Mapping[str, Any] | None, given: Mapping[str, Any]
) -> HarnessConfig:
    """Return a config in which `given` replaces fields. Names can be in camelCase."""
    if isinstance(config, HarnessConfig) and not given:
        return config
    if isinstance(config, HarnessConfig):
        base = {one.name: getattr(config, one.name) for one in fields(HarnessConfig)}
    else:
        base = arguments.in_snake_case(HarnessConfig, _checked_base(config), "config")
    return HarnessConfig.from_dict(
        {**base, **arguments.in_snake_case(HarnessConfig, given, "config")}
    )


def _checked_base(config: Any) -> Mapping[str, Any]:
    if config is not None and not isinstance(config, Mapping):
        raise arguments.wrong("config", "a HarnessConfig or a dictionary of its fields", config)
    return config or {}


def create_coding_harness(
    working_directory: str | Path | None = None,
    config: HarnessConfig | Mapping[str, Any] | None = None,
    **given: Any,
) -> VelHarness:
    """Return a harness for code in a directory: a sandbox over it, and a plan.

    >>> create_coding_harness("./work", max_turns=20).config.planning
    True
    """
    preset = {"sandbox": True, "planning": True, "system_prompt": CODING_PROMPT}
    if working_directory is not None:
        given["working_directory"] = working_directory
    return create_harness(_over(preset, config), **given)


def create_research_harness(
    config: HarnessConfig | Mapping[str, Any] | None = None, **given: Any
) -> VelHarness:
    """Return a harness for research: a prompt for it, a sandbox, and a plan.

    >>> create_research_harness(max_turns=20).config.max_turns
    20
    """
    preset = {"sandbox": True, "planning": True, "system_prompt": RESEARCH_PROMPT}
    return create_harness(_over(preset, config), **given)


def _over(
    preset: Mapping[str, Any], config: HarnessConfig | Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return `preset` with the fields of `config` that are not defaults."""
    if isinstance(config, HarnessConfig):
        usual = HarnessConfig()
        given = {one.name: getattr(config, one.name) for one in fields(config)}
        return {**preset, **{k: v for k, v in given.items() if v != getattr(usual, k)}}
    return {**preset, **arguments.in_snake_case(HarnessConfig, _checked_base(config), "config")}
