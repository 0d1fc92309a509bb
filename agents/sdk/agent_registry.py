"""Types of agents for delegation, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from agents.features.subagents.types import (
    ALIASES,
    BUILT_IN_NAMES,
    EXPLORE_TYPE,
    GENERAL,
    PLAN_TYPE,
)
from agents.sdk import arguments
from agents.sdk.config import SubagentConfig, checked_tools
from agents.sdk.errors import SetupError
from agents.spec import SubagentSpec


@dataclass
class AgentConfig:
    """A type of agent. `tools` are names of tools, or functions; empty: those of the main agent.

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
    """Return agent types by name, with an instance for each dictionary. Raises `SetupError`."""
    found = arguments.named("custom_agents", given, '{"audit": AgentConfig(["grep"])}')
    return {
        name: arguments.instance_of(AgentConfig, item, f"custom_agents: {name}")
        for name, item in found.items()
    }


def _defaults() -> dict[str, AgentConfig]:
    """Return new instances, which a program can change."""
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


class AgentRegistry:
    """The types default, explore and plan, and those that a program adds.

    >>> registry = AgentRegistry({"audit": AgentConfig(["grep"], description="Audits code.")})
    >>> registry.list()
    ['default', 'explore', 'plan', 'audit']
    """

    def __init__(
        self, custom_agents: Mapping[str, AgentConfig | Mapping[str, Any]] | None = None
    ) -> None:
        self._agents = {**_defaults(), **checked_types(custom_agents or {})}

    def get(self, agent_id: str) -> AgentConfig | None:
        return self._agents.get(agent_id)

    def register(self, agent_id: str, config: AgentConfig | Mapping[str, Any]) -> None:
        self._agents |= checked_types({agent_id: config})

    def list(self) -> list[str]:
        return [*self._agents]

    def get_descriptions(self) -> str:
        """Return one line for each type."""
        return "\n".join(f"- {name}: {one.description}" for name, one in self._agents.items())


def as_subagent(agent_id: str, config: AgentConfig, prompt: str) -> SubagentConfig:
    """Return the type as a subagent of an agent with the prompt `prompt`. Raises `SetupError`.

    A type called default replaces the general subagent. explore and plan, which cannot change
    files, stay as they are.
    """
    name = ALIASES.get(agent_id, agent_id)
    if name in BUILT_IN_NAMES and name != GENERAL:
        raise SetupError(f"{agent_id!r} is a type of Vel's own: give yours another name.")
    told = [part for part in (prompt, config.system_prompt_addition) if part]
    return SubagentConfig(
        name=name,
        description=config.description or f"The agent type {agent_id}",
        system_prompt="\n\n".join(told) if config.system_prompt_addition else None,
        tools=[*config.tools],
        max_turns=config.max_turns,
        read_only=config.read_only,
    )
