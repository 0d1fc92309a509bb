"""The middleware of this feature."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from agents.engine.prompt.history import BAD_ENDINGS
from agents.engine.review import has_calls
from agents.events.append import EventDraft, dump
from agents.events.catalogue.messages import ReasoningDelta, TextDelta
from agents.events.event import Piece
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
from agents.features.guardrails.retries import ModelRetries, ToolRetries
from agents.features.guardrails.settings import GuardSettings
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
    Watched,
)
from agents.kernel.park import End
from agents.middleware.base import Middleware, ToolResult
from agents.middleware.registry import ToolkitMissing
from agents.models import Message, MessageRole
from agents.providers.base import Block, Reply

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
            ruling = Ruling("block", "", "the message was empty after the change", ruling.guardrail)
        if ruling.action == "block":
            reason = f"The guardrail {ruling.guardrail} blocked the message: {ruling.reason}."
            return End(INPUT_REFUSED, reason, [ruling.event("input")], refuses_message=True)
        if ruling.action == "replace":
            write = partial(_replace_message, message, ruling.text)
            await run.write_events([ruling.event("input")], write)
        return None

    async def accepts_message(self, run: RunContext, text: str) -> bool:
        guards = run.state(RunGuards)
        if not guards.has("check_input"):
            return True
        ruling = await guards.rule("check_input", context_of(run, run.turn), text=text)
        return ruling.action == "allow"

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


BLOCKED = "guardrail"
"""`Message.stop_reason` of an answer that was blocked."""


class HeldBack:
    """A reply's stream without its text, which must be checked as a whole first."""

    def __init__(self, stream: Watched) -> None:
        self._stream = stream

    def add(self, kind: type[Piece], part: str, text: str) -> None:
        if kind not in (TextDelta, ReasoningDelta):
            self._stream.add(kind, part, text)

    def put(self, draft: EventDraft) -> None:
        self._stream.put(draft)

    def drop_parts(self) -> None:
        self._stream.drop_parts()


@dataclass(slots=True)
class _Checked:
    """A reply while it is checked."""

    reply: Reply
    shown: Reply
    events: list[EventDraft] = field(default_factory=list)
    note: str = ""
    end: End | None = None


async def check_reply(run: RunContext, guards: RunGuards, ending: Ending) -> ReplyDecision | None:
    """Let the guardrails check the thinking and the text of a reply."""
    reply = ending.reply
    is_final = not has_calls(reply) and reply.stop_reason not in ("pause_turn", *BAD_ENDINGS)
    checked = _Checked(reply, ending.shown)
    thought = "\n\n".join(
        block.get("thinking", "") for block in reply.blocks if block["type"] == "thinking"
    )
    if thought.strip():
        ruling = await guards.rule("check_output", context_of(run, ending.turn), text=thought)
        if ruling.action != "allow":
            _hide_thoughts(checked, ruling)
    text = "".join(block["text"] for block in reply.blocks if block["type"] == "text")
    if text.strip():
        context = context_of(run, ending.turn, is_final=is_final)
        ruling = await guards.rule("check_output", context, text=text)
        if ruling.action != "allow":
            await _rule_text(run, checked, ruling, is_final=is_final)
    if not checked.events:
        return None
    return ReplyDecision(
        note=checked.note,
        end=checked.end,
        reply=checked.reply,
        shown=checked.shown,
        events=checked.events,
    )


def _hide_thoughts(checked: _Checked, ruling: Ruling) -> None:
    """Hide the thoughts from watchers. The model gets its signed thoughts back unchanged."""
    shown = ruling.text if ruling.action == "replace" else _withheld(ruling)
    blocks: list[Block] = []
    for block in checked.shown.blocks:
        if block["type"] == "thinking":
            block, shown = {**block, "thinking": shown}, ""
        blocks.append(block)
    checked.shown = replace(checked.shown, blocks=blocks)
    checked.events.append(ruling.event("thinking"))


async def _rule_text(run: RunContext, checked: _Checked, ruling: Ruling, *, is_final: bool) -> None:
    checked.events.append(ruling.event("output"))
    if ruling.action == "replace" and ruling.text.strip():
        _set_text(checked, ruling.text)
        return
    _set_text(checked, _withheld(ruling))
    if ruling.is_broken:
        checked.end = End(
            REFUSED,
            f"The guardrail {ruling.guardrail} could not check a reply, which is withheld: "
            f"{ruling.reason}. The worker's log says more.",
        )
    elif is_final:
        checked.reply = replace(checked.reply, stop_reason=BLOCKED)
        checked.shown = replace(checked.shown, stop_reason=BLOCKED)
        count = 1 + await run.in_database(_blocked_before, run.row.pk)
        if count >= GuardSettings.now().GUARDRAIL_ATTEMPTS:
            checked.end = End(
                REFUSED,
                f"The guardrail {ruling.guardrail} blocked the answer, the {count}. that was "
                f"blocked in this run: {ruling.reason}.",
            )
        else:
            checked.note = (
                f"The guardrail {ruling.guardrail} withheld your answer: {ruling.reason}. The user "
                "has not seen it. Answer again so that it passes, or explain that you cannot."
            )


def _withheld(ruling: Ruling) -> str:
    return f"[withheld by the guardrail {ruling.guardrail}: {ruling.reason or 'nothing was left'}]"


def _set_text(checked: _Checked, text: str) -> None:
    """Replace all text of a reply by `text`."""
    checked.reply = replace(checked.reply, blocks=_with_text(checked.reply.blocks, text))
    checked.shown = replace(checked.shown, blocks=_with_text(checked.shown.blocks, text))


def _with_text(blocks: list[Block], text: str) -> list[Block]:
    changed: list[Block] = []
    is_put = False
    for block in blocks:
        if block["type"] != "text":
            changed.append(block)
        elif not is_put:
            changed.append({"type": "text", "text": text})
            is_put = True
    return changed


def _blocked_before(run_id: str) -> int:
    return Message.objects.filter(
        run=run_id, role=MessageRole.ASSISTANT, stop_reason=BLOCKED
    ).count()
