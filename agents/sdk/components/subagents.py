"""Delegation as a component: subagents of an agent, or tools that start subagents."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.custom.tool_spec import ToolSpec
from agents.sdk import arguments
from agents.sdk.agent_registry import AgentConfig, AgentRegistry
from agents.sdk.built_in import BuiltInMiddleware
from agents.sdk.components.spawner import SubagentSpawner, SubagentStatus
from agents.sdk.config import (
    CONCURRENT,
    DeepAgentConfig,
    SubagentConfig,
    checked_subagents,
    checked_tools,
)
from agents.sdk.errors import SetupError
from agents.sdk.model_config import checked_model


class SubagentMiddleware(BuiltInMiddleware):
    """The general subagent and `subagents`; `options` as for `SubagentSpawner`.

    >>> writer = SubagentConfig("writer", "Writes texts.")
    >>> delegation = SubagentMiddleware(
    ...     scripted_model(["A poem."]), subagents=[writer], sandbox_enabled=False
    ... )
    >>> asyncio.run(delegation.task("writer", "Write a poem"))["result"]
    'A poem.'
    """

    name = "subagents"
    leave_out = 'options={"general_subagent": False}'
    adds_up = True

    def __init__(
        self,
        default_model: Any = None,
        default_tools: list[Any] | None = None,
        subagents: Sequence[SubagentConfig | Mapping[str, Any]] | None = None,
        max_concurrent: int = CONCURRENT,
        **options: Any,
    ) -> None:
        arguments.check_number("max_concurrent", max_concurrent, 1)
        arguments.known_fields(DeepAgentConfig, options, "SubagentMiddleware")
        self.default_model = checked_model(default_model, "default_model")
        self.default_tools = checked_tools("default_tools", default_tools or ())
        self.max_concurrent = max_concurrent
        self.subagents = {item.name: item for item in checked_subagents(subagents or ())}
        self._own = dict(self.subagents)
        if "general" not in self.subagents:
            text = "General-purpose subagent with the tools of its agent"
            self.subagents["general"] = SubagentConfig("general", text)
        self._options = options
        self._spawners: dict[str, SubagentSpawner] = {}

    def configure(self, config: DeepAgentConfig) -> DeepAgentConfig:
        given = {self.max_concurrent, config.max_concurrent_subagents} - {CONCURRENT}
        if len(given) > 1:
            raise SetupError(
                f"max_concurrent_subagents={config.max_concurrent_subagents} contradicts "
                f"max_concurrent={self.max_concurrent} of the SubagentMiddleware: leave one out."
            )
        return replace(
            config,
            subagents=[*config.subagents, *map(self._with_defaults, self._own.values())],
            max_concurrent_subagents=given.pop() if given else CONCURRENT,
        )

    def _with_defaults(self, item: SubagentConfig) -> SubagentConfig:
        return replace(
            item,
            model=item.model or self.default_model,
            tools=[*(item.tools or self.default_tools)],
        )

    def get_tools(self) -> Sequence[ToolSpec]:
        return (
            ToolSpec.from_function(self.task, timeout=600),
            ToolSpec.from_function(self.parallel_tasks, timeout=600),
        )

    async def task(self, subagent: str, task: str, context: str | None = None) -> dict[str, Any]:
        """Let a subagent work on a task by itself and return what it found."""
        config = self.subagents.get(subagent)
        if config is None:
            known = ", ".join(self.subagents)
            return {"error": f"There is no subagent {subagent!r}. There are: {known}."}
        message = f"{task}\n\nContext:\n{context}" if context else task
        done = await self._spawner(config).spawn(message, config.name)
        if done.status != SubagentStatus.COMPLETED:
            return {"subagent": subagent, "task": task, "error": done.error}
        return {"subagent": subagent, "task": task, "result": done.result}

    async def parallel_tasks(self, tasks: list[dict[str, Any]]) -> dict[str, Any]:
        """Let subagents work on several tasks at once.

        Args:
            tasks: Each as {"subagent", "task", "context"}
        """
        room = asyncio.Semaphore(self.max_concurrent)

        async def one(given: dict[str, Any]) -> dict[str, Any]:
            async with room:
                return await self.task(
                    given.get("subagent", "general"), given["task"], given.get("context")
                )

        results = await asyncio.gather(*(one(given) for given in tasks))
        errors = [result["error"] for result in results if "error" in result]
        return {
            "results": list(results),
            "errors": errors or None,
            "task_count": len(tasks),
            "success_count": len(results) - len(errors),
        }

    def get_system_prompt_segment(self) -> str:
        listed = "\n".join(f"- {name}: {one.description}" for name, one in self.subagents.items())
        return (
            f"## Subagents\nDelegate with `task`, several at once with `parallel_tasks`:\n{listed}"
        )

    async def close(self) -> None:
        """Cancel the delegated tasks and close their agents."""
        for spawner in self._spawners.values():
            await spawner.close()
        self._spawners.clear()

    def _spawner(self, config: SubagentConfig) -> SubagentSpawner:
        if config.name not in self._spawners:
            if config.skills:
                raise SetupError(
                    f"The subagent {config.name}: skills need an agent. Give the middleware to "
                    "create_deep_agent, or the skills to `options`, as skill_dirs."
                )
            kind = AgentConfig(
                tools=list(config.tools or self.default_tools),
                max_turns=config.max_turns,
                description=config.description,
                system_prompt_addition=config.system_prompt,
                read_only=config.read_only,
            )
            self._spawners[config.name] = SubagentSpawner(
                AgentRegistry({config.name: kind}),
                config.model or self.default_model,
                self.max_concurrent,
                **self._options,
            )
        return self._spawners[config.name]


SubagentsMiddleware = SubagentMiddleware
