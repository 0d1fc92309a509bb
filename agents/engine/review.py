"""Looking at a reply before it is stored: whether it may be shown, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from agents.engine.deltas import DeltaStream
from agents.engine.guarding import REFUSED, HeldBack, Ruling, context_of
from agents.engine.history import BAD_ENDINGS
from agents.engine.notes import note_json
from agents.events.append import EventDraft
from agents.kernel.middleware import Commit, Ending, ReplyDecision
from agents.kernel.park import End
from agents.models import Message, MessageRole
from agents.providers.base import Block, Reply
from agents.settings import GuardSettings

if TYPE_CHECKING:
    from agents.engine.session import Session

BLOCKED = "guardrail"
"""`Message.stop_reason` of an answer that was blocked."""


@dataclass(slots=True)
class Review:
    """What becomes of a reply: `reply` is stored and sent back, `shown` goes to watchers.

    `ends`: the run ends with it. With a `note` (as `note_json` makes it) the model is asked again
    instead, and with an `end` the run fails.
    """

    reply: Reply
    shown: Reply
    ends: bool
    drafts: list[EventDraft] = field(default_factory=list)
    note: str = ""
    author: str = "guardrails"
    """Whose note it is."""
    end: End | None = None
    completed: dict[str, Any] = field(default_factory=dict)
    """Fields of the event `run.completed`."""
    commits: list[Commit] = field(default_factory=list)

    def fail(self, code: str, message: str) -> None:
        self.ends, self.end = True, End(code, message)

    def ask_again(self, text: str, author: str = "guardrails") -> None:
        self.ends, self.note, self.author = False, note_json(text), author

    def add(self, author: str, decision: ReplyDecision) -> None:
        """Add what a middleware has decided."""
        if decision.note:
            if not self.ends:
                raise RuntimeError(
                    f"The middleware {author} adds a note to a reply that does not end the run. "
                    "Look at `ending.ends` first, or return `Tell` from before_model."
                )
            self.ask_again(decision.note, author)
        if decision.reply is not None:
            self.reply = decision.reply
        self.drafts += decision.events
        if decision.end is not None:
            self.drafts += decision.end.events
            self.fail(decision.end.code, decision.end.message)
        self.completed |= decision.completed
        self.commits += [Commit(write, True, None) for write in decision.writes]
        if decision.then is not None:
            self.commits.append(Commit(_nothing, False, decision.then))


def _nothing() -> None:
    """There is no row to write."""


def reply_stream(session: Session) -> DeltaStream:
    """Where a reply is streamed to: without its words, if these have to be checked first."""
    if session.guards is None or not session.guards.has("check_output"):
        return session.stream
    return HeldBack(session.stream)  # type: ignore[return-value]  # all that a model call uses


async def review_reply(session: Session, turn: int, reply: Reply) -> Review:
    """Let the guardrails look at a reply."""
    review = Review(reply, reply, ends=not _calls(reply) and reply.stop_reason != "pause_turn")
    text = "".join(block["text"] for block in reply.blocks if block["type"] == "text")
    if session.guards is not None and session.guards.has("check_output"):
        await _check(session, turn, review, text)
    return review


async def ask_middleware(session: Session, turn: int, review: Review) -> None:
    """Let the middleware decide, one after the other, until one ends the run."""
    for item in session.chain.after_model:
        if review.end is not None:
            return
        ending = Ending(turn, review.reply, review.ends)
        decision = await item.after_model(session.context, ending)
        if decision is not None:
            review.add(item.name, decision)


def _calls(reply: Reply) -> bool:
    return any(block["type"] == "tool_use" for block in reply.blocks)


async def _check(session: Session, turn: int, review: Review, text: str) -> None:
    guards, reply = session.guards, review.reply
    assert guards is not None
    is_final = not _calls(reply) and reply.stop_reason not in ("pause_turn", *BAD_ENDINGS)
    with session.handle.interruptible():
        thought = "\n\n".join(
            block.get("thinking", "") for block in reply.blocks if block["type"] == "thinking"
        )
        if thought.strip():
            context = context_of(session.run, turn)
            ruling = await guards.rule("check_output", context, text=thought)
            if ruling.action != "allow":
                _hide_thoughts(review, ruling)
        if text.strip():
            context = context_of(session.run, turn, is_final=is_final)
            ruling = await guards.rule("check_output", context, text=text)
            if ruling.action != "allow":
                await _rule_text(session, review, ruling, is_final=is_final)


def _hide_thoughts(review: Review, ruling: Ruling) -> None:
    """From those who watch. The model gets its signed thoughts back unchanged."""
    shown = ruling.text if ruling.action == "replace" else _withheld(ruling)
    blocks: list[Block] = []
    for block in review.shown.blocks:
        if block["type"] == "thinking":
            block, shown = {**block, "thinking": shown}, ""
        blocks.append(block)
    review.shown = replace(review.shown, blocks=blocks)
    review.drafts.append(ruling.event("thinking"))


async def _rule_text(session: Session, review: Review, ruling: Ruling, *, is_final: bool) -> None:
    review.drafts.append(ruling.event("output"))
    if ruling.action == "replace" and ruling.text.strip():
        _set_text(review, ruling.text)
        return
    _set_text(review, _withheld(ruling))
    if ruling.is_broken:
        review.fail(
            REFUSED,
            f"The guardrail {ruling.guardrail} could not check a reply, which is withheld: "
            f"{ruling.reason}. The worker's log says more.",
        )
    elif is_final:
        review.reply = replace(review.reply, stop_reason=BLOCKED)
        review.shown = replace(review.shown, stop_reason=BLOCKED)
        count = 1 + await session.database.run(_blocked_before, session.run.pk)
        if count >= GuardSettings.now().GUARDRAIL_ATTEMPTS:
            review.fail(
                REFUSED,
                f"The guardrail {ruling.guardrail} blocked the answer, the {count}. that was "
                f"blocked in this run: {ruling.reason}.",
            )
        else:
            review.ask_again(
                f"The guardrail {ruling.guardrail} withheld your answer: {ruling.reason}. The "
                "user has not seen it. Answer again so that it passes, or say what you cannot give."
            )


def _withheld(ruling: Ruling) -> str:
    return f"[withheld by the guardrail {ruling.guardrail}: {ruling.reason or 'nothing was left'}]"


def _set_text(review: Review, text: str) -> None:
    """Put `text` in the place of all that a reply says."""
    review.reply = replace(review.reply, blocks=_with_text(review.reply.blocks, text))
    review.shown = replace(review.shown, blocks=_with_text(review.shown.blocks, text))


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
