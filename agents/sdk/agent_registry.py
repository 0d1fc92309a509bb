"""The registry of agent types, to which an agent can delegate tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from weakref import WeakMethod

from agents.features.subagents.types import ALIASES, EXPLORE_TYPE, PLAN_TYPE
from agents.sdk import arguments
from agents.sdk.config import SubagentConfig, checked_tools
from agents.sdk.errors import SetupError
from agents.spec import SubagentSpec

MAX_TYPES = 50
"""The maximum number of types of an agent, because each type is a line of its prompt."""


@dataclass
class AgentConfig:
    """A type of agent.

    `tools` are names of tools, or functions. Without any, the type has the tools of the main agent.
    `system_prompt_addition` is text after the main agent's system prompt.
    With `read_only` it cannot change files, neither with tools nor with commands.

    >>> AgentConfig(["read_file", "grep"], max_turns=10, read_only=True).max_turns
    10
    """

    tools: list[Any] = field(default_factory=list)
    max_turns: int = 50
    description: str = ""
    system_prompt_addition: str | None = None
    read_only: bool = False

    def __post_init__(self) -> None:
        self.tools = checked_tools("tools", self.tools)
        arguments.check_number("max_turns", self.max_turns, 1)
        arguments.check_texts(self, ("description",))
        arguments.check_texts(self, ("system_prompt_addition",), or_none=True)
        arguments.check_flags(self, ("read_only",))


def checked_types(given: Any) -> dict[str, AgentConfig]:
    """Return agent types by name, with each dictionary of fields as an `AgentConfig`.

    Raises `SetupError`.
    """
    found = arguments.named("custom_agents", given, '{"audit": AgentConfig(["grep"])}')
    return {
        name: arguments.instance_of(AgentConfig, item, f"custom_agents: {name}")
        for name, item in found.items()
    }


def _defaults() -> dict[str, AgentConfig]:
    """Return new instances of the default types, which a program may change."""
    return {
        "default": AgentConfig(
            [
                "execute",
                "read_file",
                "write_file",
                "edit_file",
                "ls",
                "glob",
                "grep",
                "write_todos",
            ],
            50,
            "Works on a task of several steps",
        ),
        **{one.name: _as_config(one) for one in (EXPLORE_TYPE, PLAN_TYPE)},
    }


def _as_config(built_in: SubagentSpec) -> AgentConfig:
    return AgentConfig(
        list(built_in.tools or ()),
        built_in.max_turns,
        built_in.description,
        built_in.system_prompt,
        built_in.read_only,
    )


DEFAULT_AGENTS: Mapping[str, AgentConfig] = MappingProxyType(_defaults())
"""The types of a registry that gets no others. Replace one with `AgentRegistry({"default": …})`."""


Check = Callable[[Sequence[SubagentConfig]], None]


class AgentRegistry:
    """The agent types default, explore and plan, and those that a program adds.

    A program can replace any of them. Agents and spawners that use the registry have a new type
    from their next run on.

    >>> registry = AgentRegistry({"audit": AgentConfig(["grep"], description="Audits code.")})
    >>> registry.list()
    ['default', 'explore', 'plan', 'audit']
    """

    def __init__(
        self, custom_agents: Mapping[str, AgentConfig | Mapping[str, Any]] | None = None
    ) -> None:
        """Create a registry with the default types and `custom_agents`. Raises `SetupError`."""
        self._agents = _defaults()
        self._checks: list[WeakMethod[Check]] = []
        self._lock = threading.Lock()
        self._agents = self._with(checked_types(custom_agents or {}))

    def get(self, agent_id: str) -> AgentConfig | None:
        return self._agents.get(agent_id)

    def register(self, agent_id: str, config: AgentConfig | Mapping[str, Any]) -> None:
        """Add or replace a type. Raises `SetupError` for an invalid type, which changes nothing.

        A type is also invalid if an agent that uses the registry could not use it.
        """
        with self._lock:
            found = self._with(checked_types({agent_id: config}))
            for check in self._checks:
                if (method := check()) is not None:
                    method(_own(found, ""))
            self._agents = found

    def list(self) -> list[str]:
        return [*self._agents]

    def get_descriptions(self) -> str:
        """Return a text for the model with one line for each type."""
        return "\n".join(f"- {name}: {one.description}" for name, one in self._agents.items())

    def subagents(self, prompt: str = "") -> Sequence[SubagentConfig]:
        """Return the types as subagents. `prompt` is the agent's system prompt: see `as_subagent`.

        Types with the default values are omitted, because every agent has them.
        """
        return _own(self._agents, prompt)

    def checked_by(self, check: Check) -> None:
        """Register the method `check`, which may refuse types with `SetupError`.

        Before a type is added or replaced, it is called with the subagents that would result. The
        registry does not keep the object of the method alive.
        """
        self._checks = [one for one in self._checks if one() is not None]
        self._checks.append(WeakMethod(check))

    def _with(self, added: Mapping[str, AgentConfig]) -> dict[str, AgentConfig]:
        """Return all types and the added ones. Raises `SetupError` if they are invalid together."""
        found = {**self._agents, **added}
        own = [one.name for one in _own(found, "")]
        if twice := next((name for name in own if own.count(name) > 1), None):
            ids = " and ".join(name for name in found if ALIASES.get(name, name) == twice)
            raise SetupError(f"custom_agents: {ids} are names of one type: use one of them.")
        if len(own) > MAX_TYPES:
            raise SetupError(f"custom_agents: {MAX_TYPES} types at most, got {len(own)}.")
        return found


def _own(agents: Mapping[str, AgentConfig], prompt: str) -> list[SubagentConfig]:
    """Return as subagents the types that differ from those of every agent."""
    return [
        as_subagent(name, config, prompt)
        for name, config in agents.items()
        if config != DEFAULT_AGENTS.get(name)
    ]


def possible_tools(names: Iterable[Any], options: Mapping[str, Any]) -> list[Any]:
    """Return `names` without the tools that the options of the agent disable."""
    without = {"sandbox_enabled": "execute", "planning": "write_todos"}
    left_out = {tool for name, tool in without.items() if options.get(name) is False}
    return [name for name in names if name not in left_out]


def as_subagent(agent_id: str, config: AgentConfig, prompt: str) -> SubagentConfig:
    """Return the type as a subagent. Raises `SetupError`.

    `prompt` is the agent's system prompt. It precedes `system_prompt_addition`, if the type has
    one. The type called default becomes the general subagent.
    """
    told = [part for part in (prompt, config.system_prompt_addition) if part]
    return SubagentConfig(
        name=ALIASES.get(agent_id, agent_id),
        description=config.description or f"The agent type {agent_id}",
        system_prompt="\n\n".join(told) if config.system_prompt_addition else None,
        tools=[*config.tools],
        max_turns=config.max_turns,
        read_only=config.read_only,
    )
