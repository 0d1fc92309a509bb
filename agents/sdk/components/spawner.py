"""Run agents of a registry's types from a program, in parallel."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from agents.sdk import arguments
from agents.sdk.agent_registry import (
    DEFAULT_AGENTS,
    AgentConfig,
    AgentRegistry,
    as_subagent,
    possible_tools,
)
from agents.sdk.config import DeepAgentConfig, SubagentConfig
from agents.sdk.deep_agent import DeepAgent
from agents.sdk.errors import AgentError, RunCancelled, UnknownName

logger = logging.getLogger(__name__)

WAIT_SECONDS = 300.0


class SubagentStatus(StrEnum):
    """The status of a spawned task.

    >>> SubagentStatus("completed") is SubagentStatus.COMPLETED
    True
    """

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass
class SubagentResult:
    """The result of one task. `messages` is the conversation. Times are in UTC.

    >>> SubagentResult("1", "Look around", "explore").status
    <SubagentStatus.PENDING: 'pending'>
    """

    id: str
    task: str
    agent_type: str
    status: SubagentStatus = SubagentStatus.PENDING
    result: str | None = None
    error: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)


class SubagentSpawner:
    """Runs tasks by agents of given types, at most `max_concurrent` in parallel.

    A task runs as a subagent's task does. If one of its calls requires approval, the call is
    rejected and the task fails. `options` are fields of `DeepAgentConfig` for all
    types, such as `sandbox_working_dir`. A type's own prompt follows `system_prompt`.

    >>> async def look():
    ...     spawner = SubagentSpawner(model=scripted_model(["Two files."]), sandbox_enabled=False)
    ...     result = await spawner.spawn("Look around")
    ...     await spawner.close()
    ...     return result.result
    >>> asyncio.run(look())
    'Two files.'
    """

    def __init__(
        self,
        registry: AgentRegistry | None = None,
        model: Any = None,
        max_concurrent: int = 5,
        **options: Any,
    ) -> None:
        if registry is not None and not isinstance(registry, AgentRegistry):
            raise arguments.wrong("registry", "an AgentRegistry or None", registry)
        self.registry = AgentRegistry() if registry is None else registry
        self._model = model
        self.options = dict(options)
        arguments.check_number("max_concurrent", max_concurrent, 1)
        arguments.known_fields(DeepAgentConfig, options, "SubagentSpawner")
        self._config(as_subagent("default", AgentConfig(), ""))  # wrong options are refused here
        self._room = asyncio.Semaphore(max_concurrent)
        self._agents: list[tuple[SubagentConfig, DeepAgent]] = []
        self._tasks: dict[str, asyncio.Task[SubagentResult]] = {}
        self.results: dict[str, SubagentResult] = {}

    async def spawn(self, task: str, agent_type: str = "default") -> SubagentResult:
        """Run a task and return its result, also if the task fails.

        If the caller is cancelled, so is the task. Raises `UnknownName` for an unknown type.
        """
        id = self.start(task, agent_type)
        try:
            return await self.wait(id, timeout=None)
        except asyncio.CancelledError:
            self.cancel(id)
            raise

    def start(self, task: str, agent_type: str = "default") -> str:
        """Start a task and return its id without waiting, for `wait` and `cancel`.

        Raises `UnknownName` for an unknown type.
        """
        subagent = self.find(agent_type)
        if subagent is None:
            known = ", ".join(self._types())
            raise UnknownName(f"Unknown agent type: {agent_type}. There are: {known}.")
        result = SubagentResult(uuid.uuid4().hex, task, agent_type)
        self.results[result.id] = result
        work = asyncio.create_task(self._work(result, subagent))
        self._tasks[result.id] = work
        work.add_done_callback(lambda done: self._ended(result, done))
        return result.id

    def _ended(self, result: SubagentResult, work: asyncio.Task[SubagentResult]) -> None:
        del self._tasks[result.id]
        if work.cancelled():  # before it started
            result.status, result.error = SubagentStatus.CANCELLED, "It was cancelled."

    async def wait(
        self,
        id: str,
        timeout: float | None = WAIT_SECONDS,  # noqa: ASYNC109  # part of the public interface
    ) -> SubagentResult:
        """Wait for the end of a task and return its result.

        Raises `TimeoutError` after `timeout` seconds, while the task continues, and `UnknownName`
        for an unknown id.
        """
        if id not in self.results:
            raise UnknownName(f"There is no subagent {id!r}.")
        if (work := self._tasks.get(id)) is not None:
            async with asyncio.timeout(timeout):
                await asyncio.wait([work])
            await asyncio.sleep(0)  # the task's done callback completes the result
        return self.results[id]

    def cancel(self, id: str) -> bool:
        """Cancel a task. Return False if it has ended, or if there is no such task."""
        work = self._tasks.get(id)
        return work is not None and work.cancel()

    async def close(self) -> None:
        """Cancel all tasks and close their agents."""
        works = list(self._tasks.values())
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)
        for _, agent in self._agents:
            await agent.aclose()
        self._agents.clear()

    async def _work(self, result: SubagentResult, subagent: SubagentConfig) -> SubagentResult:
        session = result.id
        try:
            async with self._room:
                result.status, result.started_at = SubagentStatus.RUNNING, datetime.now(UTC)
                agent = self._agent(subagent)
                waits_for: list[str] = []
                async for values in agent.stream_subagent(subagent.name, result.task, session):
                    result.messages = values["messages"]
                    result.result = values["response"]
                    waits_for = [item["tool_name"] for item in values["interrupts"]]
                if result.result is not None:
                    result.status = SubagentStatus.COMPLETED
                else:
                    await self._reject(agent, result, waits_for)
        except (asyncio.CancelledError, RunCancelled):
            result.status, result.error = SubagentStatus.CANCELLED, "It was cancelled."
        except Exception as error:
            if not isinstance(error, AgentError):
                logger.warning("The subagent %s failed: %s", result.id, error, exc_info=True)
            result.status, result.error = SubagentStatus.FAILED, str(error)
        result.completed_at = datetime.now(UTC)
        return result

    async def _reject(self, agent: DeepAgent, result: SubagentResult, tools: list[str]) -> None:
        """Reject the pending requests of a run and end it: no person can decide them here."""
        result.status = SubagentStatus.FAILED
        result.error = (
            f"It needs the approval of a person for {', '.join(tools) or 'a call'}, and a spawned "
            "task cannot wait for one. The call was rejected and the run was cancelled. To allow "
            "the tool without approval, pass interrupt_on={tool: False}."
        )
        async for _ in agent.reject(result.id, "No person can decide about a spawned task."):
            pass

    def find(self, agent_type: str) -> SubagentConfig | None:
        """Return the type as a subagent, None if there is no such type."""
        config = self.registry.get(agent_type)
        if config is None:
            return None
        subagent = as_subagent(agent_type, config, self.options.get("system_prompt") or "")
        if config == DEFAULT_AGENTS.get(agent_type):
            subagent.tools = possible_tools(subagent.tools, self.options)
        if "only_tools" in self.options:
            subagent.tools = []
        if subagent.tools:
            subagent.tools += self.options.get("tools") or []
        subagent.max_turns = self.options.get("max_steps", subagent.max_turns)
        return subagent

    def _types(self) -> Sequence[str]:
        """Return the names that `find` knows."""
        return self.registry.list()

    def _agent(self, subagent: SubagentConfig) -> DeepAgent:
        """Return the agent that works as `subagent` alone. It is created at the first call."""
        for known, agent in self._agents:
            if known == subagent:
                return agent
        agent = DeepAgent(self._config(subagent))
        self._agents.append((subagent, agent))
        return agent

    def _config(self, subagent: SubagentConfig) -> DeepAgentConfig:
        given = {"name": f"subagent-{subagent.name}"[:60], "model": self._model, **self.options}
        return DeepAgentConfig(**given, subagents=[subagent])
