"""Check the model's text before it is visible to people."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from agents.engine.prompt.history import BAD_ENDINGS
from agents.engine.review import has_calls
from agents.events.append import EventDraft
from agents.events.catalogue.messages import ReasoningDelta, TextDelta
from agents.events.event import Piece
from agents.features.guardrails.checking import REFUSED, Ruling, RunGuards, context_of
from agents.features.guardrails.settings import GuardSettings
from agents.kernel.middleware import Ending, ReplyDecision, RunContext, Watched
from agents.kernel.park import End
from agents.models import Message, MessageRole
from agents.providers.base import Block, Reply

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
                f"The guardrail {ruling.guardrail} withheld your answer: {ruling.reason}. The "
                "user has not seen it. Answer again so that it passes, or say what you cannot give."
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
