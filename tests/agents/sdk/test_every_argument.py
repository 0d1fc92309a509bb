"""Each argument of the public API refuses a value of no possible kind, by its name."""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import vel
from vel import AgentError, DeepAgent, Skill, StateFilesystemBackend, scripted_model


class Odd:
    """A value that no argument accepts."""

    def __repr__(self) -> str:
        return "<odd>"


def double(number: int) -> int:
    """Double a number."""
    return number * 2


REQUIRED: dict[str, dict[str, Any]] = {
    "SubagentConfig": {"name": "x", "description": "d"},
    "DatabaseBackend": {"connections": {}},
    "DatabaseMiddleware": {"connections": {"shop": "sqlite:///shop.sqlite3"}},
    "create_sandbox": {"working_dir": "/nowhere"},
    "BubblewrapSandbox": {"working_dir": "/nowhere"},
    "SeatbeltSandbox": {"working_dir": "/nowhere"},
    "CompositeBackend": {"default": StateFilesystemBackend(), "routes": {}},
    "SandboxFilesystemBackend": {"working_dir": "/nowhere"},
    "Skill": {"name": "x", "description": "d"},
    "ToolSpec": {"name": "x", "description": "d", "handler": double},
    "scripted_model": {"turns": ["ok"]},
}
"""The other arguments of a call with one wrong argument."""
RESULTS = {
    *("AgentFile", "ExecutionResult", "FileData", "ModelAnswer", "QueryResult", "StreamEvent"),
    *("SubagentResult", "TodoItem", "TodoList", "ToolAnswer", "ToolContext"),
}
"""Classes whose instances Vel makes, and that hooks return."""
NOT_CALLED = {"BaseMiddleware", "BaseSandbox", "DEFAULT_AGENTS", "Middleware"}
ANY_VALUE = {
    ("CompositeBackend", "default"),
    ("CompositeBackend", "routes"),
    ("StateFilesystemBackend", "store"),
}
"""Arguments of which any object can be the right kind."""


def is_called(name: str) -> bool:
    found = getattr(vel, name)
    is_other = isinstance(found, type) and (
        issubclass(found, AgentError | Exception) or hasattr(found, "__members__")
    )
    return name not in RESULTS | NOT_CALLED and not is_other


def cases() -> Iterator[tuple[str, str]]:
    for name in filter(is_called, vel.__all__):
        for parameter in inspect.signature(getattr(vel, name)).parameters.values():
            is_named = parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
            if is_named and (name, parameter.name) not in ANY_VALUE:
                yield name, parameter.name


def refusal(call: Callable[[], Any], what: str) -> str:
    """Return the message of the error that the call raises."""
    try:
        call()
    except AgentError as error:
        return str(error)
    pytest.fail(f"{what} is accepted")


def wrong_values(annotation: str) -> list[Any]:
    is_list = re.match(r"(list|tuple|Sequence|Iterable|Paths)\b", annotation)
    return [Odd(), "text"] if is_list else [Odd()]


def test_each_argument_is_refused_by_its_name() -> None:
    refused = []
    for name, argument in cases():
        function = getattr(vel, name)
        parameter = inspect.signature(function).parameters[argument]
        for value in wrong_values(str(parameter.annotation)):
            given = {**REQUIRED.get(name, {}), argument: value}
            is_positional = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
            first = [given.pop(argument)] if is_positional else []
            call = functools.partial(function, *first, **given)
            assert argument in refusal(call, f"{name}({argument}={value!r})")
            refused.append(name)
    assert len(refused) > 150


async def first_of(items: AsyncIterator[Any]) -> None:
    await anext(items)


CALLS: dict[str, list[str]] = {
    "run": ["message", "session_id", "context", "queue"],
    "run_stream": ["message", "session_id", "mode", "context", "queue"],
    "resume": ["session_id", "mode"],
    "reject": ["session_id", "reason", "mode"],
    "pending": ["session_id"],
    "files": ["session_id"],
}


def test_each_argument_of_a_run_is_refused_before_any_query() -> None:
    # pytest-django allows no query in a test without a mark.
    agent = DeepAgent({"model": scripted_model(["ok"], "every-argument"), "sandbox_enabled": False})

    async def call(function: Callable[..., Any], given: dict[str, Any]) -> None:
        found = function(**given)
        await (first_of(found) if hasattr(found, "__anext__") else found)

    for method, arguments in CALLS.items():
        for argument in arguments:
            message = {"message": "Go"} if method.startswith("run") else {"session_id": "s"}
            work = functools.partial(call, getattr(agent, method), {**message, argument: Odd()})
            assert argument in refusal(lambda work=work: asyncio.run(work()), method)


def test_a_list_of_a_skill_becomes_a_tuple() -> None:
    assert Skill("x", "d", tags=["a"]).tags == ("a",)


def test_errors_of_sessions_are_errors_of_the_program() -> None:
    for name in ("InvalidRequest", "NotFound", "Conflict", "NoSpace", "NotAllowed", "InvalidSkill"):
        assert issubclass(getattr(vel, name), AgentError)
    assert issubclass(vel.SandboxNotAvailableError, vel.SetupError)
