"""Guardrails and hooks of an operator, good and bad, for tests to register."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings as django_settings
from django.db import connection
from django.test import override_settings

from agents.features.guardrails.public import (
    Decision,
    GuardContext,
    Guardrail,
    HookContext,
    Hooks,
    allow,
    block,
)
from agents.features.guardrails.public import replace as replaced
from agents.models import ToolCall
from tests.support.hang import HANG

PATH = "tests.support.guards"
WORD = "swordfish"

seen: list[tuple[Any, ...]] = []
"""The arguments of the guardrails and hooks below, in order."""
opened = threading.Event()
"""Set at the end of a test, so that blocked guardrails and hooks continue."""


@contextmanager
def registered(
    guardrails: tuple[str, ...] = (), hooks: tuple[str, ...] = (), **vel: Any
) -> Iterator[None]:
    """Put the named classes of this module into the settings, and clear `seen`."""
    seen.clear()
    opened.clear()
    paths = {
        "GUARDRAILS": tuple(f"{PATH}.{name}" for name in guardrails),
        "HOOKS": tuple(f"{PATH}.{name}" for name in hooks),
    }
    try:
        with override_settings(VEL={**django_settings.VEL, **paths, **vel}):
            yield
    finally:
        opened.set()


class NoWord(Guardrail):
    """Blocks the word everywhere, asynchronously."""

    name = "no-word"

    async def check_input(self, context: GuardContext, text: str) -> Decision:
        seen.append(("input", context.turn, text))
        await asyncio.sleep(0)
        return block("it has the word") if WORD in text else allow()

    async def check_output(self, context: GuardContext, text: str) -> Decision:
        seen.append(("output", context.turn, text, context.is_final))
        return block("it has the word") if WORD in text else allow()

    async def check_tool_call(
        self, context: GuardContext, tool: str, given: dict[str, Any]
    ) -> Decision:
        seen.append(("call", tool, given))
        verdict = block("it has the word") if WORD in str(given) else allow()
        given.clear()  # changes only its own copy
        return verdict

    async def check_tool_result(
        self, context: GuardContext, tool: str, given: dict[str, Any], text: str
    ) -> Decision:
        seen.append(("result", tool, text))
        return block("it has the word") if WORD in text else allow()


class Mask(Guardrail):
    """Replaces the word, in a thread, and queries the database for it."""

    name = "mask"

    def _masked(self, text: str) -> Decision:
        assert not connection.in_atomic_block
        ToolCall.objects.count()
        return replaced(text.replace(WORD, "****")) if WORD in text else allow()

    def check_input(self, context: GuardContext, text: str) -> Decision:
        return self._masked(text)

    def check_output(self, context: GuardContext, text: str) -> Decision:
        return self._masked(text)

    def check_tool_result(
        self, context: GuardContext, tool: str, given: dict[str, Any], text: str
    ) -> Decision:
        return self._masked(text)


class Everywhere(NoWord):
    name = "everywhere"
    for_every_agent = True


class Hangs(Guardrail):
    """Makes no decision, and cannot be cancelled."""

    name = "hangs"
    seconds = 0.05

    def check_tool_call(self, context: GuardContext, tool: str, given: dict[str, Any]) -> Decision:
        opened.wait(HANG)
        return allow()


class HangsAsync(Guardrail):
    name = "hangs-async"
    seconds = 0.05

    async def check_output(self, context: GuardContext, text: str) -> Decision:
        await asyncio.sleep(60)
        return allow()


class Raises(Guardrail):
    name = "raises"

    def check_tool_call(self, context: GuardContext, tool: str, given: dict[str, Any]) -> Decision:
        raise ValueError(f"not to be told: {given}")

    def check_output(self, context: GuardContext, text: str) -> Decision:
        raise SystemExit(f"not to be told: {text}")


class SaysNothing(Guardrail):
    """Returns nothing, because its author forgot the return statement."""

    name = "says-nothing"

    def check_input(self, context: GuardContext, text: str) -> Decision:  # type: ignore[empty-body]
        pass


class ChangesCalls(Guardrail):
    name = "changes-calls"

    def check_tool_call(self, context: GuardContext, tool: str, given: dict[str, Any]) -> Decision:
        return replaced("{}")


class Watch(Hooks):
    """Records every call."""

    def run_started(self, context: HookContext) -> None:
        seen.append(("run_started", context.run_id, connection.in_atomic_block))

    async def before_model_call(self, context: HookContext) -> None:
        seen.append(("before_model_call", context.turn))

    async def after_model_call(
        self, context: HookContext, stop_reason: str, usage: dict[str, int]
    ) -> None:
        seen.append(("after_model_call", context.turn, stop_reason, sorted(usage)))

    def before_tool(
        self, context: HookContext, call_id: str, tool: str, given: dict[str, Any]
    ) -> None:
        seen.append(("before_tool", tool, given))

    def after_tool(
        self, context: HookContext, call_id: str, tool: str, text: str, is_error: bool
    ) -> None:
        seen.append(("after_tool", tool, text, is_error))

    def approval_requested(self, context: HookContext, calls: list[dict[str, Any]]) -> None:
        seen.append(("approval_requested", [(call["tool"], call["input"]) for call in calls]))

    def run_ended(self, context: HookContext, status: str, code: str, message: str) -> None:
        seen.append(("run_ended", context.run_id, status, code))


class Ends(Hooks):
    async def run_ended(self, context: HookContext, status: str, code: str, message: str) -> None:
        seen.append(("run_ended", context.run_id, status, code))


class Breaks(Hooks):
    """Does everything that a hook should not do."""

    seconds = 0.05

    def run_started(self, context: HookContext) -> None:
        raise ValueError(WORD)

    async def before_model_call(self, context: HookContext) -> None:
        raise SystemExit(WORD)

    def before_tool(
        self, context: HookContext, call_id: str, tool: str, given: dict[str, Any]
    ) -> None:
        opened.wait(HANG)

    async def after_tool(
        self, context: HookContext, call_id: str, tool: str, text: str, is_error: bool
    ) -> None:
        time.sleep(0.2)  # noqa: ASYNC251  # blocks the loop of the hooks, not the engine's

    async def run_ended(self, context: HookContext, status: str, code: str, message: str) -> None:
        raise KeyboardInterrupt


class FromVelTs(Hooks):
    """Uses the names of vel-ts."""

    def onToolCall(
        self, context: HookContext, call_id: str, tool: str, given: dict[str, Any]
    ) -> None:
        seen.append(("onToolCall", tool))

    def onError(self, context: HookContext, status: str, code: str, message: str) -> None:
        seen.append(("onError", code))


class Idle(Hooks):
    """Has no hooks."""


class Unnamed(Guardrail):
    def check_input(self, context: GuardContext, text: str) -> Decision:
        return allow()


class Lazy(Guardrail):
    name = "lazy"


class SecondMask(Mask):
    """Has the name of another guardrail."""


class Secrets2(Mask):
    name = "secrets"


no_word = NoWord()
