"""Call a developer's function as a tool. Every outcome becomes a result."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from pydantic import BaseModel

from agents.custom.tool_spec import ToolSpec
from agents.kernel.beside import Beside, TooManyHang
from agents.middleware.base import Tool, ToolResult, error
from agents.middleware.context import ToolContext as EngineContext
from agents.middleware.custom.asking import AccountOff, PermissionMissing, context_of
from agents.middleware.custom.connections import all_or_nothing, with_fresh_connections
from agents.middleware.custom.state import StateKeeper, Turn
from agents.middleware.custom.values import result_of
from agents.models import Effect

BESIDE = Beside("tool")
"""Runs functions in threads, and coroutines if no event loop awaits the run."""

LoopOf = Callable[[], asyncio.AbstractEventLoop | None]


def engine_tool(
    spec: ToolSpec,
    *,
    keeper: StateKeeper | None = None,
    loop: LoopOf = lambda: None,
    of_settings: bool = False,
) -> Tool[Any]:
    """Return the engine's tool for a function.

    While `loop()` is running, coroutines run on it, since clients of the program may belong to it.
    `of_settings`: the tool is from the settings and runs in workers, for any person.
    """

    async def run(context: EngineContext, given: BaseModel) -> ToolResult:
        try:
            async with asyncio.timeout(spec.timeout):
                turn = await keeper.take(context) if keeper is not None else None
        except TimeoutError:
            return error(f"{spec.name} was not called: an earlier call still goes on.", "busy")
        try:
            named = await _named(spec, context, given, of_settings)
            if isinstance(named, ToolResult):
                return named
            return await _outcome(spec, named, turn, loop(), of_settings)
        finally:
            if turn is not None and not turn.begun:
                turn.end()

    return Tool(
        name=spec.name,
        description=spec.description,
        input_model=spec.signature.model,
        run=run,
        effect=Effect(spec.effect),
        time_limit=spec.timeout,
        asks=spec.requires_approval,
        has_timeout_field=False,
    )


async def _named(
    spec: ToolSpec, context: EngineContext, given: BaseModel, of_settings: bool
) -> dict[str, Any] | ToolResult:
    """Return the function's arguments by name, or the reason why it is not called.

    This queries Vel's own database. Its errors are raised, as for Vel's own tools.
    """
    signature = spec.signature
    named = _arguments(signature.parameters, given)
    if not (of_settings or signature.context or spec.permission):
        return named
    try:
        asked = await context_of(context, spec.permission)
    except AccountOff:
        return error("The account that this runs for has been switched off.", "not_allowed")
    except PermissionMissing as missing:
        return error(
            f"{spec.name} was not called: who this runs for needs the permission {missing}.",
            "not_allowed",
        )
    return {**named, signature.context: asked} if signature.context else named


async def _outcome(
    spec: ToolSpec,
    named: dict[str, Any],
    turn: Turn | None,
    loop: asyncio.AbstractEventLoop | None,
    of_settings: bool,
) -> ToolResult:
    try:
        return await _call(spec, named, turn, loop, of_settings)
    except PermissionDenied as problem:
        return error(f"{spec.name}: not allowed. {problem}".strip(), "not_allowed")
    except TooManyHang:
        return error(f"{spec.name} was not called: too many earlier calls hang.", "busy")
    except TimeoutError:
        return error(
            f"{spec.name} took longer than {spec.timeout:g} s and was given up; what it does "
            "may still go on.",
            "timeout",
        )
    except asyncio.CancelledError:
        if asyncio.current_task().cancelling():  # type: ignore[union-attr]
            raise
        return error(f"{spec.name} failed: it was cancelled.", "exception")
    except Exception as problem:  # noqa: BLE001  # code of a third party
        # Also a database's error: it concerns the tool and not the engine.
        code = "connection" if isinstance(problem, ConnectionError) else "exception"
        return error(f"{spec.name} failed: {type(problem).__name__}: {problem}", code)


async def _call(
    spec: ToolSpec,
    named: dict[str, Any],
    turn: Turn | None,
    loop: asyncio.AbstractEventLoop | None,
    of_settings: bool,
) -> ToolResult:
    positional = [named.pop(name) for name in spec.signature.positional]
    if _is_async(spec.handler):
        run = _turned_async(spec, turn, positional, named)
        if of_settings:
            run = with_fresh_connections(run)
        value = await _await_on(loop, run, spec.timeout)
    else:
        call = _turned(spec, turn, positional, named)
        if of_settings and spec.atomic and spec.effect != "read":
            value = await all_or_nothing(call, lambda f: BESIDE.call(f, seconds=spec.timeout))
        else:
            value = await BESIDE.call(call, seconds=spec.timeout)
    result = result_of(spec.name, value)
    return result if turn is None else turn.add_to(result)


def _arguments(names: tuple[str, ...], given: BaseModel) -> dict[str, Any]:
    """Return the validated values. Nested models and dataclasses are not converted."""
    return {name: getattr(given, name) for name in names} | (given.model_extra or {})


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  # for callable objects
    )


def _turned(
    spec: ToolSpec, turn: Turn | None, positional: list[Any], named: dict[str, Any]
) -> Callable[[], Any]:
    def call() -> Any:
        try:
            if turn is not None:
                turn.load()
            value = spec.handler(*positional, **named)
            if turn is not None:
                turn.read()
            return value
        finally:
            if turn is not None:
                turn.end()

    return call


def _turned_async(
    spec: ToolSpec, turn: Turn | None, positional: list[Any], named: dict[str, Any]
) -> Callable[[], Any]:
    async def call() -> Any:
        try:
            if turn is not None:
                turn.load()
            value = await spec.handler(*positional, **named)
            if turn is not None:
                turn.read()
            return value
        except (SystemExit, KeyboardInterrupt) as problem:
            # These would end the program's event loop.
            raise RuntimeError(f"it raised {type(problem).__name__}") from problem
        finally:
            if turn is not None:
                turn.end()

    return call


async def _await_on(
    loop: asyncio.AbstractEventLoop | None, function: Callable[[], Any], seconds: float
) -> Any:
    if loop is None or not loop.is_running():
        return await BESIDE.call(function, seconds=seconds)
    future = asyncio.run_coroutine_threadsafe(function(), loop)
    async with asyncio.timeout(seconds):
        return await asyncio.wrap_future(future)
