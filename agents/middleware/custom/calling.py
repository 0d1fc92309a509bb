"""Calls of a developer's function as a tool. Every outcome becomes a result."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import PermissionsMixin
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, close_old_connections, transaction
from pydantic import BaseModel, TypeAdapter
from pydantic_core import PydanticSerializationError

from agents.custom.signature import ToolContext
from agents.custom.tool_spec import ToolSpec
from agents.events.append import dump
from agents.kernel.beside import Beside, TooManyHang
from agents.middleware.base import Tool, ToolResult, error
from agents.middleware.context import ToolContext as EngineContext
from agents.middleware.custom.state import StateKeeper, Turn
from agents.models import Effect, Run

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
    """Return the engine's tool that calls a function.

    `keeper` has the state of the function's middleware, if any. While the event loop `loop()` is
    running, coroutines run on it, because clients of the program may belong to it. With
    `of_settings`, the tool comes from the settings and runs in workers, for any person.
    """

    async def run(context: EngineContext, given: BaseModel) -> ToolResult:
        try:
            async with asyncio.timeout(spec.timeout):
                turn = await keeper.take(context) if keeper is not None else None
        except TimeoutError:
            return error(f"{spec.name} was not called: an earlier call is still running.", "busy")
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
    """Return the function's arguments by name, or an error result if it must not be called.

    This queries Vel's own database, whose errors are raised, as for Vel's own tools.
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
            f"{spec.name} took longer than {spec.timeout:g} s and was abandoned. It may still be "
            "running.",
            "timeout",
        )
    except asyncio.CancelledError:
        if asyncio.current_task().cancelling():  # type: ignore[union-attr]
            raise
        return error(f"{spec.name} failed: it was cancelled.", "exception")
    except Exception as problem:  # noqa: BLE001  # code of a third party
        # This includes a database error, which concerns the tool and not the engine.
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
    """Return the validated values by name. Nested models and dataclasses are not converted."""
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
            # These exceptions would end the program's event loop.
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


class AccountOff(Exception):
    """Raised if the person's account is not active now."""


class PermissionMissing(Exception):
    """Raised if the person does not have, or no longer has, the permission for the tool."""


async def context_of(engine: EngineContext, permission: str = "") -> ToolContext:
    """Return the context of a call, with the person's present rights.

    Raises `AccountOff` and, unless the person has `permission` now, `PermissionMissing`.
    """
    run = await engine.in_database(_asked, engine.run_id, permission)
    return ToolContext(
        user=run.owner,
        run_id=engine.run_id,
        thread_id=engine.thread_id,
        session_id=run.thread.key,
        agent=engine.spec.slug,
        call_id=engine.call_id,
        progress=engine.progress,
    )


def _asked(run_id: str, permission: str) -> Run:
    run = Run.objects.select_related("owner", "thread").get(pk=run_id)
    if not run.owner.is_active:
        raise AccountOff
    if permission and not _has(run.owner, permission):
        raise PermissionMissing(permission)
    return run


def _has(person: AbstractBaseUser, permission: str) -> bool:
    """Return whether Django's authentication backends grant the permission.

    The backends may use databases.
    """
    try:
        return isinstance(person, PermissionsMixin) and person.has_perm(permission)
    except DatabaseError as error:
        error.add_note(
            f"Vel asked the authentication backends whether {person.get_username()} has the "
            f"permission {permission}"
        )
        raise


async def all_or_nothing(
    call: Callable[[], Any], on_thread: Callable[[Callable[[], Any]], Awaitable[Any]]
) -> Any:
    """Run `call()` in a thread, in one transaction of Vel's database.

    The transaction is rolled back if the caller has given up.
    """
    given_up = threading.Event()

    def whole() -> Any:
        with transaction.atomic():
            value = call()
            if given_up.is_set():
                transaction.set_rollback(True)
            return value

    try:
        return await on_thread(whole)
    except (TimeoutError, asyncio.CancelledError):
        given_up.set()
        raise


def with_fresh_connections(call: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    """Wrap a coroutine function so that broken database connections are closed before and after.

    The function uses asgiref's shared thread, where connections may be broken.
    """

    async def fresh() -> Any:
        await sync_to_async(close_old_connections)()
        try:
            return await call()
        finally:
            await sync_to_async(close_old_connections)()

    return fresh


_ANY: TypeAdapter[Any] = TypeAdapter(Any)


def result_of(name: str, value: Any) -> ToolResult:
    """Return a function's value as a result: text unchanged, other values as JSON.

    None becomes an empty text. JSON is possible for models, dataclasses, dates, numbers and
    collections. Other values become an error result.
    """
    if isinstance(value, ToolResult):
        return value
    if value is None or isinstance(value, str):
        return ToolResult(value or "")
    try:
        plain = _ANY.dump_python(value, mode="json")
        dump(plain)
    except (PydanticSerializationError, ValueError, TypeError, RecursionError) as problem:
        return error(
            f"{name} was called, but its return value ({type(value).__name__}) is not JSON: "
            f"{str(problem)[:200]}",
            "bad_result",
        )
    return ToolResult(plain if isinstance(plain, dict | list) else dump(plain))
