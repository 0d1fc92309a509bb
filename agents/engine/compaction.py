"""Making a conversation fit again: old texts are cut, or old turns left out for a summary.

Between two model calls, never while calls are open. The rows of the transcript stay as they are;
a `Compaction` says how the model is told of them, and begins an epoch.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from agents.engine.compaction_plan import Plan, Room, make_plan, place_after
from agents.engine.compaction_rows import (
    Material,
    read_material,
    read_messages,
    store_compaction,
)
from agents.engine.compaction_text import (
    SUMMARY,
    UserMessage,
    files_of,
    journal_summary,
    message_limit,
    opening_text,
)
from agents.engine.conversation import conversation_of
from agents.engine.crash_points import CrashPoint, reached
from agents.engine.eviction import keep
from agents.engine.history import Place, text_of
from agents.engine.result_files import message_place
from agents.engine.results import clean_text
from agents.engine.session import Session
from agents.engine.side_calls import count_side_call
from agents.engine.snapshots import to_its_end
from agents.engine.summary import Summary, summarise
from agents.engine.token_count import estimate_tokens, head_tokens, measured
from agents.engine.window import BYTES_PER_TOKEN, note_overflow, window_of
from agents.events.catalogue.messages import StepReset
from agents.kernel.middleware import ModelRequest
from agents.middleware.registry import toolset_of
from agents.models import Compaction, CompactionAuthor
from agents.providers.base import ProviderError, Reply
from agents.settings import ContextSettings

logger = logging.getLogger(__name__)

MAX_TRIES = 4
"""In a row, each harder than the one before."""
TORN = "model_context_window_exceeded"
OVERFLOWS = frozenset({"context_window", "too_large"})
"""Codes of errors that mean: the prompt is too long."""
MIN_FREE = 500
"""Tokens that a conversation needs at least."""


async def make_room(session: Session) -> None:
    """Compact until the conversation is under the threshold, or at least fits.

    Raises `ProviderError` (context_window) if it cannot be made to.
    """
    hardness = session.overflows
    while True:
        await _compact(session, min(hardness, MAX_TRIES))
        total = session.meter.total
        if total <= session.window.threshold:
            return
        hardness += 1
        if hardness > MAX_TRIES:
            if total <= session.window.usable:
                return
            raise _hopeless(session, f"it still has about {total:,} tokens")


async def refuse_torn_reply(session: Session, request: ModelRequest, reply: Reply) -> None:
    """Raise `ProviderError` (context_window) for a reply that the window's end has torn.

    It counts in what the run used, and the call is made again with more room, a few times.
    """
    if reply.stop_reason == TORN and session.overflows < MAX_TRIES:
        await count_side_call(session, request, reply.usage)
        raise ProviderError(
            "The reply reached the end of the model's window.", code="context_window"
        )


async def after_overflow(session: Session, error: ProviderError) -> None:
    """The server says that the prompt is too long: believe it, and make room.

    Raises `error` in clearer words after a few times in a row.
    """
    session.overflows += 1
    if session.overflows > MAX_TRIES:
        raise _hopeless(session, error.message) from error
    note_overflow(session.provider, session.spec.model, error)
    session.window = await window_of(session.provider, session.spec)
    session.stream.put(StepReset(step=session.turn + 1, reason="the conversation is made shorter"))
    logger.warning(
        "the conversation does not fit: %s", error.message, extra={"run_id": session.run.id}
    )
    await make_room(session)


def _hopeless(session: Session, reason: str) -> ProviderError:
    return ProviderError(
        f"The conversation does not fit into the model's window of {session.window.size:,} tokens "
        f"({reason}), though it was made shorter as far as possible. Give the agent a model with a "
        "larger window, or fewer tools and skills; then resume the run.",
        code="context_window",
        retryable=True,
    )


async def _compact(session: Session, hardness: int) -> None:
    assert not session.open_calls
    before = session.meter.total
    material = await session.database.run(read_material, session)
    usable = int(session.window.usable / session.meter.scale)
    room = Room(usable, head_tokens(session.head), hardness)
    if room.free < MIN_FREE:
        raise _hopeless(session, f"its prompt and tools alone have about {room.fixed:,} tokens")
    previous = material.previous
    told = estimate_tokens(previous.opening) if previous else 0
    plan = await to_its_end(session.threads, partial(make_plan, material.turns, room, told))
    row = await _kept_row(session, material, plan)
    if plan.summarise or (previous and hardness):
        await _leave_out(session, material, plan, room, row)
        reached(CrashPoint.SUMMARISED)
    row.tokens_before = before
    after = room.fixed + estimate_tokens(row.opening) + plan.kept_tokens
    if row.by == CompactionAuthor.CLIPPING:
        after = plan.clipped_tokens
    row.tokens_after = int(after * session.meter.scale)
    head, history = await session.database.run(store_compaction, session, row, plan.clipped)
    reached(CrashPoint.COMPACTED)
    session.toolset = toolset_of(session.run, session.spec, has_left_out=True)
    session.head = head
    session.meter = measured(head, history, session.meter.scale)
    session.conversation = await conversation_of(
        session.database, session.provider, session.run, head, history
    )


async def _kept_row(session: Session, material: Material, plan: Plan) -> Compaction:
    """A row that leaves nothing more out, and cuts what the plan cuts."""
    previous, end = material.previous, material.end
    older = place_after(material.turns, plan.kept, end)
    row = Compaction(
        thread_id=session.run.thread_id,
        run=session.run,
        clip_run=older[0],
        clip_turn=older[1],
        clip_bytes=plan.clip_bytes,
        until_run=end[0],
        until_turn=end[1],
        kept_bytes=plan.kept_bytes,
        by=CompactionAuthor.CLIPPING,
    )
    if previous is not None:
        row.from_run, row.from_turn = previous.from_run, previous.from_turn
        row.summary, row.opening, row.files = previous.summary, previous.opening, previous.files
        row.message_files = dict(previous.message_files)
    for said in material.turns:
        if said.place[1] == 0:
            limit = plan.clip_bytes if said.place < older else plan.kept_bytes
            await _keep_message(session, row, said.place[0], text_of(said), limit)
    return row


async def _keep_message(
    session: Session, row: Compaction, number: int, text: str, limit: int
) -> None:
    """Put a message that will be cut into a file, once."""
    if len(text.encode()) <= limit or str(number) in row.message_files:
        return
    place = message_place(session.run.thread_id, number)
    kept = await keep(session, "message", place, clean_text(text))
    if kept.path:
        row.message_files[str(number)] = kept.path


async def _leave_out(
    session: Session, material: Material, plan: Plan, room: Room, row: Compaction
) -> None:
    """Let `row` leave out the turns before those that the plan keeps, for a summary."""
    turns = material.turns[: len(material.turns) - plan.kept]
    start = place_after(material.turns, plan.kept, material.end)
    limit = min(ContextSettings.now().SUMMARY_TOKENS, room.share(SUMMARY))
    replies = [said for said in turns if said.calls or said.parts[0][0] == "assistant"]
    summary = await summarise(session, replies, row.summary, limit) if replies else Summary()
    row.by = CompactionAuthor.MODEL
    row.summary = summary.text
    if not summary.text:
        if summary.problem:
            logger.warning(
                "no summary by the model: %s", summary.problem, extra={"run_id": session.run.id}
            )
        old = material.previous.summary if material.previous else ""
        row.by = CompactionAuthor.JOURNAL
        row.summary = journal_summary(old, replies, limit * BYTES_PER_TOKEN)
    row.from_run, row.from_turn = start
    row.clip_run, row.clip_turn = 0, 0
    row.files = files_of(material.previous, turns)
    messages = await _messages(session, row, start, room)
    reminders = [part.reminder() for part in session.parts]
    opening = opening_text(
        messages, row.summary, row.by, material.todos, row.files, reminders, room
    )
    row.summary, row.opening = _storable(row.summary), _storable(opening)
    row.files = [_storable(path) for path in row.files]


def _storable(text: str) -> str:
    """Text that every database takes in a column: a model may write a NUL."""
    return clean_text(text).replace("\x00", "\N{REPLACEMENT CHARACTER}")


async def _messages(
    session: Session, row: Compaction, before: Place, room: Room
) -> Sequence[UserMessage]:
    messages: list[UserMessage] = await session.database.run(read_messages, session, before)
    limit = message_limit(len(messages), room)
    for message in messages:
        await _keep_message(session, row, message.number, message.text, limit)
    return [
        replace(message, path=row.message_files.get(str(message.number), ""))
        for message in messages
    ]
