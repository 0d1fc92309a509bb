"""Middleware of operators around model calls and tool calls, on the real engine."""

from __future__ import annotations

import asyncio
import re
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.checks import run_checks
from django.test import override_settings

from agents.custom.hooks import EndRun, ModelAnswer, ToolAnswer
from agents.features.custom_middleware.middleware import _wrap_tool_call
from agents.kernel.middleware import ToolCallRequest
from agents.models import Message, Run, StateFile, ToolCall
from agents.services.runs.control import cancel_run
from tests.agents.engine.by_hand import a_call
from tests.support.guards import WORD, NoWord
from tests.support.runs import (
    drive_to_end,
    event_types,
    make_agent,
    make_user,
    running_worker,
    script_file,
    start_run,
    wait_for_status,
    wait_until,
)
from vel import BaseMiddleware

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = Path(__file__).resolve().parents[4] / "docs/guides/middleware.md"
LOOK = {"tool_calls": [{"name": "ls", "input": {"path": "/"}}]}
WRITE = {"tool_calls": [{"name": "write_file", "input": {"path": "/a", "content": "x"}}]}
DONE = {"text": "Done."}


@pytest.fixture(scope="module")
def page() -> Any:
    """Return the module of the documentation page."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    module = types.ModuleType("company.middleware")
    exec(compile(code, str(PAGE), "exec"), module.__dict__)
    return module


current: list[Any] = []
"""The middleware of the test: settings name functions of this module."""


def first() -> Any:
    return current[0]


def second() -> Any:
    return current[1]


@contextmanager
def registered(*items: Any, **vel: Any) -> Iterator[None]:
    current[:] = items
    paths = [f"{__name__}.{name}" for name in ("first", "second")[: len(items)]]
    with override_settings(VEL={**django_settings.VEL, "MIDDLEWARE": tuple(paths), **vel}):
        yield


def play(tmp_path: Path, *turns: dict[str, Any], **fields: Any) -> Run:
    user = make_user()
    make_agent(user, model=script_file(tmp_path, list(turns)), **fields)
    return start_run(user)


def test_the_cache_of_the_page_answers_without_the_model(page: Any, tmp_path: Path) -> None:
    cache = page.Cache()
    with registered(cache):
        run = drive_to_end(play(tmp_path, DONE))
        (answer,) = cache.answers.values()
        assert [dict(block) for block in answer.blocks] == [{"type": "text", "text": "Done."}]
        (key,) = cache.answers
        cache.answers[key] = ModelAnswer([{"type": "text", "text": "From the cache."}])
        again = drive_to_end(start_run(run.owner))
    assert [run.status, again.status] == ["completed", "completed"]
    assert Message.objects.get(run=again, role="assistant").text == "From the cache."
    assert again.clock.input_tokens == 0
    assert run.clock.input_tokens > 0
    assert "step.started" not in event_types(again)


def test_the_redaction_example_changes_the_stored_text(page: Any, tmp_path: Path) -> None:
    with registered(page.Redaction()):
        run = play(tmp_path, {"tool_calls": [{"name": "read_file", "input": {"path": "/a"}}]}, DONE)
        StateFile.objects.create(thread=run.thread, path="/a", content=b"CUST-123456")
        run = drive_to_end(run)
    call = ToolCall.objects.get(run=run)
    assert (run.status, call.status) == ("completed", "succeeded")
    assert "***-123456" in call.result
    assert "CUST-" not in call.result


def test_the_limit_of_the_page_counts_each_tenant(page: Any, tmp_path: Path) -> None:
    limit = page.TenantLimit()
    with registered(limit):
        run = play(tmp_path, LOOK, DONE)
        tenant = page.tenant_of(run.owner_id)
        limit.used = {tenant: 99, 1 - tenant: 1000}
        assert drive_to_end(run).status == "completed"
        refused = drive_to_end(start_run(run.owner))
    assert ToolCall.objects.get(run=run).status == "succeeded"
    assert (refused.status, refused.error_code) == ("failed", "tenant_limit")
    assert refused.error_message == "Your company has used its tool calls."
    assert refused.clock.turn == 0


class Fails(BaseMiddleware):
    def __init__(self, *, on_error: str, after: bool) -> None:
        self.on_error = on_error  # type: ignore[assignment]
        self.after = after

    async def wrap_model_call(self, call: Any, handler: Any) -> ModelAnswer:
        return await self._fail(handler)

    async def wrap_tool_call(self, call: Any, handler: Any) -> ToolAnswer:
        return await self._fail(handler)

    async def _fail(self, handler: Any) -> Any:
        if self.after:
            await handler()
        raise ValueError(WORD)


@pytest.mark.parametrize("after", [False, True])
def test_a_middleware_that_fails_ends_the_run_or_is_skipped(tmp_path: Path, after: bool) -> None:
    with registered(Fails(on_error="skip", after=after)):
        run = drive_to_end(play(tmp_path, WRITE, DONE))
    assert run.status == "completed", run.error_message
    assert ToolCall.objects.get(run=run).attempt == 1
    assert StateFile.objects.filter(thread=run.thread, path="/a").exists()
    with registered(Fails(on_error="end", after=after)):
        run = drive_to_end(start_run(run.owner))
    assert (run.status, run.error_code) == ("failed", "middleware_failed")
    assert "Fails raised ValueError in wrap_model_call" in run.error_message
    assert WORD not in run.error_message


def test_a_call_that_failed_in_the_engine_is_not_repeated(tmp_path: Path) -> None:
    class Hides(BaseMiddleware):
        on_error = "skip"

        async def wrap_tool_call(self, call: Any, handler: Any) -> ToolAnswer:
            with suppress(OSError):
                await handler()
            raise ValueError(WORD)

    calls = []

    async def fail(request: ToolCallRequest) -> Any:
        calls.append(request)
        raise OSError("The disk went away.")

    row = play(tmp_path, DONE)
    run: Any = types.SimpleNamespace(row=row, spec=types.SimpleNamespace(slug="a"), turn=1)
    request = ToolCallRequest(row=a_call(), effect="write")
    with pytest.raises(OSError, match="The disk went away"):
        asyncio.run(_wrap_tool_call(run, Hides(), fail, request))
    assert calls == [request]


class Hangs(BaseMiddleware):
    seconds = 0.2

    def __init__(self) -> None:
        self.cancelled = False

    async def wrap_model_call(self, call: Any, handler: Any) -> ModelAnswer:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return await handler()


def test_a_hook_has_a_time_limit_without_the_time_of_its_handler(tmp_path: Path) -> None:
    class Slow(BaseMiddleware):
        seconds = 0.2

        async def wrap_model_call(self, call: Any, handler: Any) -> ModelAnswer:
            return await handler()

    with registered(Slow()):
        run = drive_to_end(play(tmp_path, {**DONE, "delay": 0.6}))
    assert run.status == "completed", run.error_message
    with registered(Hangs()):
        run = drive_to_end(start_run(run.owner))
    assert run.error_code == "middleware_failed"
    assert "took longer than 0.2 s" in run.error_message


def test_a_run_can_be_cancelled_while_a_hook_waits(tmp_path: Path) -> None:
    hangs = Hangs()
    hangs.seconds = 50.0
    with registered(hangs):
        run = play(tmp_path, DONE)
        with running_worker() as running:
            running.submit(run.id)
            wait_until(lambda: "run.started" in event_types(run), "the claim")
            cancel_run(run.id, by="ada")
            wait_for_status(run, "cancelled")
            wait_until(lambda: hangs.cancelled or run.clock.turn == 0, "the end of the hook")


def test_guardrails_check_the_results_of_a_middleware(tmp_path: Path) -> None:
    class Says(BaseMiddleware):
        async def wrap_model_call(self, call: Any, handler: Any) -> ModelAnswer:
            answer = await handler()
            if answer.stop_reason != "end_turn":
                return answer
            return replace(answer, blocks=[{"type": "text", "text": WORD}])

        async def wrap_tool_call(self, call: Any, handler: Any) -> ToolAnswer:
            return replace(await handler(), text=WORD)

    guardrails = (f"{NoWord.__module__}.{NoWord.__name__}",)
    with registered(Says(), GUARDRAILS=guardrails, GUARDRAIL_ATTEMPTS=1):
        run = drive_to_end(play(tmp_path, LOOK, DONE, guardrails=["no-word"]))
    assert (run.status, run.error_code) == ("failed", "guardrail")
    assert WORD not in ToolCall.objects.get(run=run).result
    assert not Message.objects.filter(run=run, content__contains=WORD).exists()


def test_the_first_is_the_outermost(tmp_path: Path) -> None:
    class Adds(BaseMiddleware):
        def __init__(self, letter: str) -> None:
            self.letter = letter

        async def wrap_tool_call(self, call: Any, handler: Any) -> ToolAnswer:
            answer = await handler()
            return replace(answer, text=answer.text + self.letter)

    with registered(Adds("b"), Adds("a")):
        run = drive_to_end(play(tmp_path, LOOK, DONE))
    assert ToolCall.objects.get(run=run).result.rstrip('"').endswith("ab")


def test_a_hook_can_end_the_run_with_its_own_code(tmp_path: Path) -> None:
    class Stops(BaseMiddleware):
        async def wrap_tool_call(self, call: Any, handler: Any) -> ToolAnswer:
            raise EndRun("too_much", "That is too much.")

    with registered(Stops()):
        run = drive_to_end(play(tmp_path, LOOK, DONE))
    assert (run.status, run.error_code, run.error_message) == (
        "failed", "too_much", "That is too much.",
    )  # fmt: skip


def no_hook() -> BaseMiddleware:
    return BaseMiddleware()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nosuch.module", "cannot be used (ModuleNotFoundError"),
        (f"{__name__}.no_hook", "has no hook"),
        ("builtins.dict", "is not a subclass of vel.BaseMiddleware"),
    ],
)
def test_a_setting_that_cannot_be_used_is_an_error(path: str, words: str) -> None:
    with override_settings(VEL={**django_settings.VEL, "MIDDLEWARE": (path,)}):
        (error,) = [each for each in run_checks() if each.id == "vel.E041"]
    assert words in error.msg
