"""Delegation as a component: subagents for an agent, or their tools without an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from agents.custom.tool_spec import ToolSpec
from agents.features.subagents.inputs import FORMS, segment
from agents.features.subagents.types import BUILT_IN, GENERAL, subagents_of
from agents.kernel.lazy_modules import lazy_modules
from agents.middleware.input_check import fitting_input
from agents.sdk import arguments
from agents.sdk.agent_registry import AgentConfig, AgentRegistry, possible_tools
from agents.sdk.built_in import BuiltInMiddleware
from agents.sdk.components.spawner import SubagentSpawner, SubagentStatus
from agents.sdk.config import (
    CONCURRENT,
    DeepAgentConfig,
    SubagentConfig,
    checked_subagents,
    checked_tools,
)
from agents.sdk.environment.project import prepare
from agents.sdk.environment.threads import in_thread
from agents.sdk.errors import SetupError
from agents.sdk.model_config import checked_model
from agents.spec import SANDBOX_ONLY, AgentSpec, SubagentSpec

with lazy_modules:
    # Import late, because this module needs Django's apps.
    from agents.features.subagents import middleware as feature
    from agents.middleware import base
    from agents.middleware import context as engine

_WAITING = frozenset({"task", "parallel_tasks"})
_SECONDS = 600


class SubagentMiddleware(BuiltInMiddleware):
    """The subagents of an agent and the tools to delegate to them.

    The subagents are general, explore and plan, those in `subagents`, and the types in `registry`.
    The tools also work without an agent; `options` are then those of `SubagentSpawner`. Subagents
    that define no model or tools have `default_model` (or `model`) and `default_tools`. With a
    `registry`, or with `background`, there are also the tools spawn_subagent, spawn_parallel,
    wait_subagent and cancel_subagent.

    >>> writer = SubagentConfig("writer", "Writes texts.")
    >>> delegation = SubagentMiddleware(
    ...     scripted_model(["A poem."]), subagents=[writer], sandbox_enabled=False
    ... )
    >>> asyncio.run(delegation.task("writer", "Write a poem"))["result"]
    'A poem.'
    """

    name = "subagents"
    leave_out = 'options={"subagent_depth": 0}'
    adds_up = True

    def __init__(
        self,
        default_model: Any = None,
        default_tools: list[Any] | None = None,
        subagents: Sequence[SubagentConfig | Mapping[str, Any]] | None = None,
        max_concurrent: int = CONCURRENT,
        *,
        registry: AgentRegistry | None = None,
        model: Any = None,
        background: bool | None = None,
        **options: Any,
    ) -> None:
        arguments.check_number("max_concurrent", max_concurrent, 1)
        arguments.known_fields(DeepAgentConfig, options, "SubagentMiddleware")
        if model is not None and default_model is not None:
            raise SetupError("model contradicts default_model: leave one out.")
        name, given = (
            ("model", model) if default_model is None else ("default_model", default_model)
        )
        self.default_model = checked_model(given, name)
        if registry is not None and not isinstance(registry, AgentRegistry):
            raise arguments.wrong("registry", "an AgentRegistry or None", registry)
        self.registry = registry
        self.background = registry is not None if background is None else background
        arguments.check_flags(self, ("background",))
        self.default_tools = checked_tools("default_tools", default_tools or ())
        self.max_concurrent = max_concurrent
        self._own = {item.name: item for item in checked_subagents(subagents or ())}
        self._spawner = _Delegates(self, max_concurrent, options)

    @property
    def subagents(self) -> dict[str, SubagentConfig]:
        """Return all subagents by name."""
        options = self._spawner.options
        types = [] if self.registry is None else self.registry.subagents()
        own = {item.name: item for item in types} | self._own
        built_in = {item.name: _as_config(item, options) for item in BUILT_IN}
        return {name: self._with_defaults(item) for name, item in {**built_in, **own}.items()}

    @property
    def _has_defaults(self) -> bool:
        return self.default_model is not None or bool(self.default_tools)

    def _with_defaults(self, item: SubagentConfig) -> SubagentConfig:
        return replace(
            item,
            model=item.model or self.default_model,
            tools=[*(item.tools or self.default_tools)],
        )

    def configure(self, config: DeepAgentConfig) -> DeepAgentConfig:
        if self._spawner.options:
            name = next(iter(self._spawner.options))
            raise SetupError(f"{name}: give this option to the agent, not to its middleware.")
        given = {self.max_concurrent, config.max_concurrent_subagents} - {CONCURRENT}
        if len(given) > 1:
            raise SetupError(
                f"max_concurrent_subagents={config.max_concurrent_subagents} contradicts "
                f"max_concurrent={self.max_concurrent} of the SubagentMiddleware: leave one out."
            )
        types = config.agent_types or self.registry
        if self.registry not in (None, types):
            raise SetupError(
                "agent_types contradicts registry of the SubagentMiddleware: leave one out."
            )
        if types is not None and self._has_defaults:
            types = _Completed(types, self._with_defaults)
        own = {**self._changed_types(config), **self._own}
        return replace(
            config,
            subagents=[*config.subagents, *map(self._with_defaults, own.values())],
            agent_types=types,
            background_subagents=config.background_subagents or self.background,
            max_concurrent_subagents=given.pop() if given else CONCURRENT,
        )

    def _changed_types(self, config: DeepAgentConfig) -> dict[str, SubagentConfig]:
        """Return the types that every agent has and that a default of this middleware changes."""
        if not self._has_defaults:
            return {}
        there = {item.name for item in config.subagents}
        for types in (config.agent_types, self.registry):
            there |= set() if types is None else {item.name for item in types.subagents()}
        if not config.options.get("general_subagent", True):
            there.add(GENERAL)
        wanted = [item for item in BUILT_IN if item.name not in there]
        if config.profile == SANDBOX_ONLY:
            wanted = [item for item in wanted if item.name == GENERAL]
        if self.default_model is None:
            wanted = [item for item in wanted if item.tools is None]
        return {item.name: _as_config(item, vars(config)) for item in wanted}

    def get_tools(self) -> Sequence[ToolSpec]:
        return tuple(
            ToolSpec(
                form.name,
                form.description,
                partial(self._called, form.name),
                form.input_model,
                effect="read",
                timeout=_SECONDS,
            )
            for form in FORMS.values()
            if self.background or form.name in _WAITING
        )

    async def task(
        self, subagent: str = GENERAL, task: str = "", context: str | None = None, **aliases: Any
    ) -> Any:
        """Let a subagent work on a task. Return the result of the tool, as a dict.

        The result has the key `error` if the input is wrong or the subagent fails.

        Args:
            subagent: The name of its type.
            task: The message that it receives.
            context: More text for the subagent, which does not see this conversation.
            aliases: Other names of these parameters that models use, such as `description`.
        """
        given = {"subagent": subagent, "task": task, "context": context}
        return await self._called("task", **_given(self.task, given), **aliases)

    async def parallel_tasks(self, tasks: Sequence[Mapping[str, Any]]) -> Any:
        """Let subagents work on several tasks in parallel, each {"subagent", "task", "context"}.

        Return the result of the tool, or {"error"} for a wrong input.
        """
        return await self._called("parallel_tasks", tasks=tasks)

    async def spawn_subagent(self, task: str = "", agent: str = GENERAL, **aliases: Any) -> Any:
        """Start a subagent and return its id, or {"error"}. `aliases` are as for `task`."""
        given = _given(self.spawn_subagent, {"task": task, "agent": agent})
        return await self._called("spawn_subagent", **given, **aliases)

    async def spawn_parallel(self, tasks: Sequence[Mapping[str, Any]]) -> Any:
        """Start several subagents, each {"task", "agent"}, and return their ids."""
        return await self._called("spawn_parallel", tasks=tasks)

    async def wait_subagent(self, id: str, timeout: float | None = None) -> Any:  # noqa: ASYNC109
        """Wait for a started subagent, at most `timeout` seconds (300)."""
        return await self._called("wait_subagent", id=id, timeout=timeout)

    async def cancel_subagent(self, id: str) -> Any:
        """End a started subagent."""
        return await self._called("cancel_subagent", id=id)

    def get_system_prompt_segment(self) -> str:
        return segment(subagents_of(self._spec()).values())

    async def close(self) -> None:
        """Cancel the delegated tasks and close their agents."""
        await self._spawner.close()

    def _spec(self) -> AgentSpec:
        """Return the specification of an agent with these subagents."""
        own = [
            SubagentSpec(name=item.name, description=item.description)
            for _, item in sorted(self.subagents.items())
        ]
        return AgentSpec.model_validate(
            {
                "name": "",
                "slug": "",
                "subagents": [item.model_dump(mode="json") for item in own],
                "max_concurrent_subagents": self.max_concurrent,
            }
        )

    async def _called(self, name: str, **given: Any) -> Any:
        """Call a tool as an agent does, and return the result that its model would receive."""
        path = self._spawner.options.get("persistence_path")
        await in_thread(partial(prepare, path, database=False))
        checked = fitting_input(name, FORMS[name].input_model, given)
        if isinstance(checked, str):
            return {"error": checked}
        calls = _Calls(self._spawner, self._spec())
        done = await getattr(feature, name)(calls, checked)
        if isinstance(done, base.WaitForRuns):
            done = done.answer(await calls.ended(done.run_ids, done.seconds))
        return done.content if isinstance(done.content, dict | list) else {"error": done.content}


SubagentsMiddleware = SubagentMiddleware


def _as_config(built_in: SubagentSpec, options: Mapping[str, Any]) -> SubagentConfig:
    """Return a type that every agent has, with the tools that these options allow."""
    return SubagentConfig(
        name=built_in.name,
        description=built_in.description,
        system_prompt=built_in.system_prompt or None,
        tools=possible_tools(built_in.tools or (), options),
        max_turns=built_in.max_turns,
        read_only=built_in.read_only,
    )


def _given(method: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that differ from the defaults, so that aliases can set the others."""
    usual = method.__kwdefaults__ or {}
    names = method.__code__.co_varnames[1 : method.__code__.co_argcount]
    usual = dict(zip(names, method.__defaults__ or (), strict=True)) | usual
    return {name: value for name, value in given.items() if value != usual[name]}


class _Completed(AgentRegistry):
    """A registry whose types get the default model and tools of a middleware."""

    def __init__(self, registry: Any, complete: Callable[[SubagentConfig], SubagentConfig]) -> None:
        self._registry = registry
        self._complete = complete

    def get(self, agent_id: str) -> AgentConfig | None:
        found: AgentConfig | None = self._registry.get(agent_id)
        return found

    def register(self, agent_id: str, config: AgentConfig | Mapping[str, Any]) -> None:
        self._registry.register(agent_id, config)

    def list(self) -> list[str]:
        return [*self._registry.list()]

    def get_descriptions(self) -> str:
        return str(self._registry.get_descriptions())

    def subagents(self, prompt: str = "") -> Sequence[SubagentConfig]:
        return [self._complete(item) for item in self._registry.subagents(prompt)]

    def checked_by(self, check: Callable[[Sequence[SubagentConfig]], None]) -> None:
        self._registry.checked_by(check)


class _Delegates(SubagentSpawner):
    """The spawner of a middleware. Its types are the subagents of the middleware, and no others."""

    def __init__(
        self, middleware: SubagentMiddleware, max_concurrent: int, options: dict[str, Any]
    ) -> None:
        self._middleware = middleware
        arguments.known_fields(DeepAgentConfig, options, "SubagentMiddleware")
        super().__init__(None, middleware.default_model, max_concurrent, **options)

    def find(self, agent_type: str) -> SubagentConfig | None:
        return self._middleware.subagents.get(agent_type)

    def _types(self) -> Sequence[str]:
        return [*self._middleware.subagents]


class _Calls:
    """The `agents.middleware.context.ToolContext` of a call outside of a run."""

    def __init__(self, spawner: SubagentSpawner, spec: AgentSpec) -> None:
        self.spec = spec
        self.subagents = self
        self._spawner = spawner
        self._indexes: dict[str, int] = {}

    def tools_left(self) -> None:
        """Return None, because no skill of a parent limits the tools."""

    async def start(self, orders: Sequence[engine.TaskOrder], at_once: int) -> list[str]:
        ids = [self._spawner.start(order.message, order.subagent.name) for order in orders]
        self._indexes |= {id: order.index for id, order in zip(ids, orders, strict=True)}
        return ids

    async def report(self, run_ids: Sequence[str]) -> list[engine.SubagentReport]:
        for id in run_ids:
            if id not in self._spawner.results:
                raise engine.SubagentError(
                    f"You have started no subagent with the id {id[:100]!r}."
                )
        return [self._report(id) for id in run_ids]

    async def cancel(self, run_id: str) -> engine.SubagentReport:
        await self.report([run_id])
        self._spawner.cancel(run_id)
        return self._report(run_id)

    async def ended(
        self, run_ids: Sequence[str], seconds: float | None
    ) -> list[engine.SubagentReport]:
        """Wait for the ends of runs, at most `seconds`.

        Without `seconds`, they end with their caller.
        """
        waits = asyncio.gather(*(self._spawner.wait(id, timeout=seconds) for id in run_ids))
        try:
            await waits
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            for id in run_ids if seconds is None else ():
                self._spawner.cancel(id)
            raise
        return await self.report(run_ids)

    def _report(self, id: str) -> engine.SubagentReport:
        result = self._spawner.results[id]
        has_ended = result.status not in (SubagentStatus.PENDING, SubagentStatus.RUNNING)
        return engine.SubagentReport(
            run_id=id,
            index=self._indexes.get(id, 0),
            subagent=result.agent_type,
            status=str(result.status),
            has_ended=has_ended,
            text=result.result or "",
            error=result.error or "",
        )
