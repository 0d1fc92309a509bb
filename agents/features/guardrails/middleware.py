"""The middleware of this feature."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from agents.events.append import dump
from agents.features.guardrails.checking import (
    REFUSED,
    Ruling,
    RunGuards,
    UnknownGuardrail,
    context_of,
    program_guards,
)
from agents.features.guardrails.lifecycle import LifecycleMiddleware
from agents.features.guardrails.options import GuardrailOptions
from agents.features.guardrails.registry import chosen, guardrails
from agents.features.guardrails.replies import HeldBack, check_reply
from agents.features.guardrails.retries import ModelRetries, ToolRetries
from agents.features.guardrails.stuck import StuckMiddleware
from agents.kernel.middleware import (
    Ending,
    LoadContext,
    ModelHandler,
    ModelRequest,
    Refusal,
    ReplyDecision,
    RunContext,
    ToolCallRequest,
    ToolHandler,
)
from agents.kernel.park import End
from agents.middleware.base import Middleware, ToolResult
from agents.middleware.registry import ToolkitMissing
from agents.models import Message, MessageRole
from agents.providers.base import Reply

INPUT_REFUSED = "guardrail_input"
"""The error code of a run whose message a guardrail has blocked."""


class GuardrailMiddleware(Middleware):
    """Lets the agent's guardrails check the message, replies, calls and results."""

    name = "guardrails"

    def check_settings(self) -> None:
        guardrails()

    def load(self, context: LoadContext) -> RunGuards | End | None:
        try:
            names = chosen(context.spec.option(GuardrailOptions).guardrails)
            if not names:
                return None
            own = program_guards(context.row, context.spec.toolkit)
            return RunGuards(names, own.guardrails if own is not None else {})
        except ToolkitMissing as missing:
            return End("toolkit_missing", str(missing))
        except (UnknownGuardrail, ImproperlyConfigured) as problem:
            return End(REFUSED, str(problem))

    async def before_agent(self, run: RunContext) -> End | None:
        """Check the person's message before the first model call.

        A replacement is stored instead of the message, so a check after a crash uses it.
        """
        guards = run.state(RunGuards)
        if run.turn or not guards.has("check_input"):
            return None
        message = await run.in_database(_opening_message, run.row.pk)
        ruling = await guards.rule("check_input", context_of(run, 0), text=message.text)
        if ruling.action == "replace" and not ruling.text.strip():
            ruling = Ruling("block", "", "nothing of the message was left", ruling.guardrail)
        if ruling.action == "block":
            reason = f"The guardrail {ruling.guardrail} blocked the message: {ruling.reason}."
            return End(INPUT_REFUSED, reason, [ruling.event("input")], refuses_message=True)
        if ruling.action == "replace":
            write = partial(_replace_message, message, ruling.text)
            await run.write_events([ruling.event("input")], write)
        return None

    async def wrap_model_call(
        self, run: RunContext, request: ModelRequest, handler: ModelHandler
    ) -> Reply:
        if request.purpose == "step" and run.state(RunGuards).has("check_output"):
            request.stream = HeldBack(request.stream)
        return await handler(request)

    async def after_model(self, run: RunContext, ending: Ending) -> ReplyDecision | None:
        guards = run.state(RunGuards)
        if not guards.has("check_output"):
            return None
        return await check_reply(run, guards, ending)

    async def check_call(self, run: RunContext, call: ToolCallRequest) -> Refusal | None:
        ruling = await run.state(RunGuards).blocked_call(run, call)
        if ruling is None:
            return None
        message = f"The guardrail {ruling.guardrail} blocked this call; it was not made: "
        message += f"{ruling.reason}."
        event = ruling.event("tool_call", call_id=call.row.call_id)
        return Refusal(message, ruling.reason, REFUSED, ruling.guardrail, [event])

    async def wrap_tool_call(
        self, run: RunContext, call: ToolCallRequest, handler: ToolHandler
    ) -> ToolResult:
        result = await handler(call)
        return await run.state(RunGuards).passed_result(run, call.row, result)


def _opening_message(run_id: str) -> Message:
    return Message.objects.get(run=run_id, turn=0, role=MessageRole.USER)


def _replace_message(message: Message, text: str) -> None:
    rest: list[Any] = [block for block in message.blocks if block["type"] != "text"]
    content = dump([{"type": "text", "text": text}, *rest])
    Message.objects.filter(pk=message.pk).update(content=content)


MIDDLEWARE = (
    GuardrailMiddleware(),
    LifecycleMiddleware(),
    StuckMiddleware(),
    ModelRetries(),
    ToolRetries(),
)
