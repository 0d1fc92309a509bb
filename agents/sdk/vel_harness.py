"""`VelHarness`: an agent with the stream of the Vercel AI SDK, and agent types by name."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from agents.events.projections.ui import DEFAULT_VERSION, DIALECTS
from agents.sdk import arguments
from agents.sdk.agent_registry import AgentConfig, AgentRegistry, as_subagent, checked_types
from agents.sdk.config import DeepAgentConfig, DefaultDirectory
from agents.sdk.deep_agent import DeepAgent
from agents.sdk.errors import SetupError
from agents.sdk.streaming.agent_file import AgentFile
from agents.sdk.streaming.continued import Continued
from agents.sdk.streaming.stream import StreamMode

RESEARCH_PROMPT = """\
You research a question until you can answer it: say first what has to be found out, look for it \
in several places, delegate what can be looked at side by side, note each finding with where it \
comes from, and tell what is certain from what is not. End with a report."""
CODING_PROMPT = """\
You work on the code in your working directory: look at what is there before you change it, make \
small changes that fit it, run its tests, and say what you changed and how you checked it."""


@dataclass
class HarnessConfig:
    """The configuration of a `VelHarness`; `options` are other fields of `DeepAgentConfig`.

    A session keeps its directory: if you name another `working_directory`, its next run is refused.
    None: a session continues in its own directory, and a new session gets the current one. With
    `sandbox` False there is no directory.
    """

    model: Any = field(default=None, repr=False)
    skill_dirs: list[str] | None = None
    custom_agents: dict[str, AgentConfig] = field(default_factory=dict)
    """Dictionaries with the fields of `AgentConfig` are accepted, too."""
    system_prompt: str | None = None
    max_turns: int = 100
    working_directory: str | Path | None = None
    sandbox: bool = True
    database: bool = False
    planning: bool = True
    memory: bool = False
    databases: dict[str, str] = field(default_factory=dict, repr=False)
    guardrails: list[Any] = field(default_factory=list)
    hooks: list[Any] = field(default_factory=list)
    tool_retries: list[Mapping[str, Any]] = field(default_factory=list)
    ai_sdk_version: int = DEFAULT_VERSION
    """The version of the AI SDK whose parts the streams have: 5, 6 or 7."""
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the arguments. Raises `SetupError` that names the argument."""
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
        self.options = arguments.named("options", self.options, '{"name": "desk"}')
        arguments.known_fields(DeepAgentConfig, self.options, "options")
        usual = HarnessConfig() if self.options else self
        for name in (one.name for one in fields(self) if one.name != "options"):
            argument = _OF_AGENT.get(name, name)
            if argument in self.options and getattr(self, name) != getattr(usual, name):
                raise SetupError(f"options: {argument} contradicts {name}: leave one out.")

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> HarnessConfig:
        """Read a configuration file's data. Raises `SetupError` for an unknown name."""
        known = {one.name for one in fields(cls)}
        if unknown := sorted(set(given) - known):
            raise SetupError(f"There is no setting {unknown[0]!r}; {', '.join(sorted(known))} are.")
        return cls(**given)

    def agent_config(self) -> DeepAgentConfig:
        if self.database and not self.databases:
            raise SetupError("database=True: say which, as databases={name: url}.")
        return DeepAgentConfig(
            **{
                "name": "vel-harness",
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
                **self.options,
            }
        )

    def _directory(self) -> str:
        if self.working_directory is None:
            return DefaultDirectory(Path.cwd())
        return str(Path(self.working_directory).expanduser().absolute())


_OF_AGENT = {
    "max_turns": "max_steps",
    "sandbox": "sandbox_enabled",
    "working_directory": "sandbox_working_dir",
}
"""Fields with another name in `DeepAgentConfig`."""


class VelHarness:
    """An agent with the AI SDK's stream. `agent` is its `DeepAgent`."""

    def __init__(self, config: HarnessConfig | Mapping[str, Any] | None = None) -> None:
        """`config` can be a dictionary of its fields. Raises `SetupError` for a wrong option."""
        given = {} if config is None else config
        self.config = arguments.instance_of(HarnessConfig, given, "config")
        self._mode = StreamMode.of_ai_sdk(self.config.ai_sdk_version)
        self.agents = AgentRegistry(self.config.custom_agents)
        self.agent = DeepAgent(self.config.agent_config())
        for agent_id, one in self.config.custom_agents.items():
            self._offer(agent_id, one)

    async def run(
        self,
        message: str,
        session_id: str | None = None,
        context: Mapping[str, Any] | None = None,
        *,
        queue: bool = False,
    ) -> Any:
        """Call `DeepAgent.run`."""
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

        For example `{"type": "text-delta", "id", "delta"}`. Ends as `DeepAgent.run_stream` does; a
        failure is a part as well as an exception.
        """
        events = self.agent.run_stream(message, session_id, self._mode, context, queue=queue)
        async with aclosing(events) as parts:
            async for part in parts:
                yield part

    def resume(
        self, session_id: str | None = None, modified_state: Any = None
    ) -> Continued[dict[str, Any], Any]:
        """Call `DeepAgent.resume`; `async for` yields the parts of `run_stream`."""
        return self.agent.resume(session_id, modified_state, self._mode)

    def reject(
        self, session_id: str | None = None, reason: str = ""
    ) -> Continued[dict[str, Any], None]:
        """Call `DeepAgent.reject`; `async for` yields the parts of `run_stream`."""
        return self.agent.reject(session_id, reason, self._mode)

    async def files(self, session_id: str | None = None) -> list[AgentFile]:
        """Call `DeepAgent.files`."""
        return await self.agent.files(session_id)

    def register_agent(self, agent_id: str, config: AgentConfig | Mapping[str, Any]) -> None:
        """Add a type for delegation, from the next message on."""
        kind = checked_types({agent_id: config})[agent_id]
        self._offer(agent_id, kind)
        self.agents.register(agent_id, kind)

    def list_agent_types(self) -> list[str]:
        return self.agents.list()

    def get_state(self, session_id: str | None = None) -> dict[str, Any]:
        """Call `DeepAgent.get_state`."""
        return self.agent.get_state(session_id)

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Call `DeepAgent.load_state`."""
        self.agent.load_state(state)

    def close(self) -> None:
        """Call `DeepAgent.close`."""
        self.agent.close()

    async def aclose(self) -> None:
        await self.agent.aclose()

    async def __aenter__(self) -> VelHarness:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def _offer(self, agent_id: str, config: AgentConfig) -> None:
        prompt = self.config.system_prompt or ""
        self.agent.register_subagent(as_subagent(agent_id, config, prompt))


def create_harness(
    config: HarnessConfig | Mapping[str, Any] | None = None, **given: Any
) -> VelHarness:
    """Return a harness for a config, with the fields in `given` replaced."""
    base = _checked_base(config)
    values = {one.name: getattr(base, one.name) for one in fields(HarnessConfig)} if base else {}
    values |= dict(config) if isinstance(config, Mapping) else {}
    return VelHarness(HarnessConfig.from_dict({**values, **given}))


def _checked_base(config: Any) -> HarnessConfig | None:
    """Return a config that is an instance, and None for a dictionary."""
    if isinstance(config, HarnessConfig):
        return config
    if config is not None and not isinstance(config, Mapping):
        raise arguments.wrong("config", "a HarnessConfig or a dictionary of its fields", config)
    return None


def create_coding_harness(
    working_directory: str | Path | None = None,
    config: HarnessConfig | Mapping[str, Any] | None = None,
    **given: Any,
) -> VelHarness:
    """Return a harness for code in a directory: a sandbox over it, and a plan."""
    preset = {"sandbox": True, "planning": True, "system_prompt": CODING_PROMPT}
    if working_directory is not None:
        given["working_directory"] = working_directory
    return create_harness(_over(preset, config), **given)


def create_research_harness(
    config: HarnessConfig | Mapping[str, Any] | None = None, **given: Any
) -> VelHarness:
    """Return a harness for research: a prompt for it, a sandbox, and a plan."""
    preset = {"sandbox": True, "planning": True, "system_prompt": RESEARCH_PROMPT}
    return create_harness(_over(preset, config), **given)


def _over(
    preset: Mapping[str, Any], config: HarnessConfig | Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return `preset` with the fields of a config that are not defaults."""
    _checked_base(config)
    if isinstance(config, HarnessConfig):
        usual = HarnessConfig()
        given = {one.name: getattr(config, one.name) for one in fields(config)}
        config = {name: value for name, value in given.items() if value != getattr(usual, name)}
    return {**preset, **(config or {})}
