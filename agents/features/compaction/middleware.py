"""Make a conversation fit the context window: cut old texts, or replace old turns by a summary.

This happens between two attempts of a model call, never while calls are open. The rows of the
transcript do not change. A `Compaction` defines their form for the model, and starts an epoch.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from django.db.models import Q

from agents.engine.calls.results import clean_text
from agents.engine.crash_points import CrashPoint, reached
from agents.engine.files.attachments import attached_texts
from agents.engine.prompt.epoch import next_turn
from agents.engine.prompt.history import (
    Place,
    Said,
    latest_compaction,
    text_of,
    thread_turns,
)
from agents.engine.prompt.token_count import estimate_tokens, head_tokens
from agents.engine.prompt.window import BYTES_PER_TOKEN, usable_tokens
from agents.events.catalogue.messages import StepReset
from agents.features.compaction.events import ContextCompacted
from agents.features.compaction.eviction import EvictionMiddleware
from agents.features.compaction.opening import (
    SUMMARY,
    UserMessage,
    files_of,
    journal_summary,
    message_limit,
    opening_text,
)
from agents.features.compaction.options import ContextOptions
from agents.features.compaction.plan import (
    Plan,
    Room,
    make_plan,
    place_after,
    room_beside,
    summary_of_all,
)
from agents.features.compaction.requests import take_request
from agents.features.compaction.result_files import keep_text, message_place
from agents.features.compaction.summary import Summary, summarize
from agents.kernel.middleware import LoadContext, ModelHandler, ModelRequest, RunContext
from agents.kernel.reminders import ReminderSection, reminder_sections
from agents.middleware.base import Middleware
from agents.models import Compaction, CompactionAuthor, Message, MessageRole, Run
from agents.models.message import PERSON, UPLOADS
from agents.providers.base import ProviderError, Reply
from agents.settings import ContextSettings

MESSAGES_SHOWN = 20
"""The messages after the first that the model reads: the last ones."""


@dataclass(frozen=True, slots=True)
class Material:
    """The parts of a conversation that a compaction shortens."""

    previous: Compaction | None
    """The thread's last compaction."""
    turns: list[Said]
    """The turns that are not left out, with uncut texts."""
    end: Place
    """The place after the last of them."""
    sections: list[tuple[ReminderSection, str]]
    """The sections of features, with their texts."""
    newest: Said | None = None
    """The run's message, after the last of `turns`, if it stays as it is."""

    def with_newest_apart(self, run: Run) -> Material:
        """Take the run's message out of the turns, if the model has not replied to it yet."""
        if not self.turns or self.turns[-1].place != (run.number, 0):
            return self
        newest = self.turns[-1]
        return replace(self, turns=self.turns[:-1], end=newest.place, newest=newest)


def read_material(run: Run) -> Material:
    """Read the turns that the model gets now. They fit into the window, or nearly."""
    previous = latest_compaction(run.thread_id)
    start = (previous.from_run, previous.from_turn) if previous else (0, 0)
    turns = list(thread_turns(run, start))
    sections = [(section, section.read(run.thread_id)) for section in reminder_sections()]
    return Material(previous, turns, (run.number, next_turn(run)), sections)


def read_messages(run: Run, before: Place) -> list[UserMessage]:
    """Read people's messages before a place: the first, and the last `MESSAGES_SHOWN` others.

    Messages that a guardrail has refused are omitted.
    """
    number, turn = before
    place = Q(run__number__lt=number) | Q(run__number=number, turn__lt=turn)
    rows = Message.objects.filter(place, run__thread_id=run.thread_id, role=MessageRole.USER)
    # Messages that joined a run, and their files, are among the notes of its turns.
    rows = rows.filter(Q(turn=0) | Q(author__in=(PERSON, UPLOADS)))
    rows = rows.exclude(run__message_refused=True).order_by("run__number", "turn", "position")
    ids = list(rows.values_list("pk", flat=True))
    shown = [*ids[:1], *ids[1:][-MESSAGES_SHOWN:]]
    return [_user_message(row) for row in rows.filter(pk__in=shown).select_related("run")]


def _user_message(row: Message) -> UserMessage:
    number = row.run.number
    if row.turn:
        return UserMessage(number, row.text, f"{number}.{row.turn}.{row.position}")
    return UserMessage(number, "\n\n".join([row.text, *attached_texts(row.run)]), str(number))


def store_compaction(row: Compaction) -> None:
    """Store a compaction, in the transaction that starts an epoch.

    Invariant 5: the prompt changes only with a new epoch.
    """
    row.save(force_insert=True)


logger = logging.getLogger(__name__)

MAX_TRIES = 4
"""Attempts in a row to shorten the conversation, each harder than the one before."""
TORN = "model_context_window_exceeded"
"""The stop reason of a reply that the end of the window has cut off."""
OVERFLOWS = frozenset({"context_window", "too_large"})
"""Codes of errors that mean that the prompt is too long."""
WHOLE_TRIES = 2
"""Attempts after an error of the server that do not cut the newest message."""
MIN_FREE = 500
"""Tokens that a conversation needs at least."""


class CompactionMiddleware(Middleware):
    """Shortens the conversation before a call that is too long, and after one that was."""

    name = "compaction"

    def load(self, context: LoadContext) -> ContextOptions | None:
        options = context.spec.option(ContextOptions)
        return options if options.context_management else None

    async def wrap_model_call(
        self, run: RunContext, request: ModelRequest, handler: ModelHandler
    ) -> Reply:
        if request.purpose == "side":
            return await handler(request)
        if take_request(run.row.thread_id):
            await _compact(run, request, 0, whole=True, is_requested=True)
        if run.prompt_tokens > _threshold(run):
            await make_room(run, request)
        overflows = 0
        while True:
            # A reply that is discarded commits the writes of the wraps inside this one.
            outer, request.commits = request.commits, []
            try:
                reply = await handler(request)
                if reply.stop_reason != TORN or overflows == MAX_TRIES:
                    return reply
                await request.discard(reply)
                message = "The reply reached the end of the model's window."
                error = ProviderError(message, code="context_window")
            except ProviderError as problem:
                if problem.code not in OVERFLOWS:
                    raise
                error = problem
            finally:
                request.commits = outer + request.commits
            overflows += 1
            if overflows > MAX_TRIES:
                raise _hopeless(run, error.message) from error
            await run.learn_window(error)
            request.reset(StepReset(step=request.turn, reason="the conversation is made shorter"))
            logger.warning(
                "the conversation does not fit: %s", error.message, extra={"run_id": run.row.pk}
            )
            await make_room(run, request, overflows)


async def make_room(run: RunContext, request: ModelRequest, overflows: int = 0) -> None:
    """Compact until the conversation is under the threshold, or at least fits.

    `overflows` is how often the server has refused the prompt. Raises `ProviderError`
    (context_window) if the conversation cannot be made to fit.
    """
    hardness, whole = overflows, overflows <= WHOLE_TRIES
    while True:
        whole, limit = await _compact(run, request, min(hardness, MAX_TRIES), whole=whole)
        total = run.prompt_tokens
        if total <= limit:
            return
        hardness += 1
        if hardness > MAX_TRIES:
            if total <= usable_tokens(run.window):
                return
            if not whole:
                raise _hopeless(run, f"it still has about {total:,} tokens")
            hardness, whole = overflows, False


def _threshold(run: RunContext) -> int:
    """Return the tokens of the longest prompt that is sent as it is."""
    share = run.state(ContextOptions).compact_at or ContextSettings.now().COMPACT_AT
    return int(usable_tokens(run.window) * share)


def _hopeless(run: RunContext, reason: str) -> ProviderError:
    return ProviderError(
        f"The conversation does not fit into the model's window of {run.window.size:,} tokens "
        f"({reason}), even after compaction. Give the agent a model with a larger window, or fewer "
        "tools and skills; then resume the run.",
        code="context_window",
        retryable=True,
    )


async def _compact(
    run: RunContext,
    request: ModelRequest,
    hardness: int,
    *,
    whole: bool,
    is_requested: bool = False,
) -> tuple[bool, int]:
    """Store a shorter form. With `whole`, the newest message stays as it is, if it fits.

    If a person has requested it, a summary replaces all turns, also of a short conversation.

    Returns whether it did, and the tokens that the prompt should have at most.
    """
    before = run.prompt_tokens
    limit = _threshold(run)
    material = await run.in_database(read_material, run.row)
    usable = int(usable_tokens(run.window) / run.token_scale)
    room = Room(usable, head_tokens(run.head), hardness)
    apart = material.with_newest_apart(run.row) if whole else material
    beside = room_beside(apart.newest, room, int(limit / run.token_scale))
    whole = apart.newest is not None and beside.free >= MIN_FREE
    if whole:
        material, room = apart, beside
        limit = max(limit, int(room.usable * run.token_scale))
        if not (hardness or material.turns) and before <= limit:
            return whole, limit  # no other part can be shortened
    if room.free < MIN_FREE:
        raise _hopeless(run, f"its prompt and tools alone have about {room.fixed:,} tokens")
    previous = material.previous
    opening = estimate_tokens(previous.opening) if previous else 0
    make = summary_of_all if is_requested else make_plan
    plan = await run.in_thread(make, material.turns, room, opening)
    row = await _row_that_cuts(run, material, plan)
    if plan.summarizes or (previous and hardness):
        await _leave_out(run, material, plan, room, row)
        reached(CrashPoint.SUMMARISED)
    row.tokens_before = before
    after = room.fixed + estimate_tokens(row.opening) + plan.kept_tokens
    if row.by == CompactionAuthor.CLIPPING:
        after = plan.clipped_tokens
    row.tokens_after = int(after * run.token_scale)
    row.number = previous.number + 1 if previous else 1
    event = ContextCompacted(
        before=row.tokens_before,
        after=row.tokens_after,
        summary_ref=None if row.by == CompactionAuthor.CLIPPING else row.number,
        by=row.by,
        clipped=plan.clipped,
    )
    await request.begin_epoch([event], write=partial(store_compaction, row))
    reached(CrashPoint.COMPACTED)
    return whole, limit


async def _row_that_cuts(run: RunContext, material: Material, plan: Plan) -> Compaction:
    """Return a row that cuts the texts by the plan, but leaves out no further turns."""
    previous, end = material.previous, material.end
    older = place_after(material.turns, plan.kept, end)
    row = Compaction(
        thread_id=run.row.thread_id,
        run=run.row,
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
    for turn in material.turns:
        if turn.place[1] == 0:
            limit = plan.clip_bytes if turn.place < older else plan.kept_bytes
            await _keep_message(run, row, str(turn.place[0]), text_of(turn), limit)
    return row


async def _keep_message(run: RunContext, row: Compaction, key: str, text: str, limit: int) -> None:
    """Put a message that will be cut into a file, once."""
    if len(text.encode()) <= limit or key in row.message_files:
        return
    place = message_place(run.row.thread_id, key)
    kept = await run.in_thread(keep_text, run.files, "message", place, clean_text(text))
    if kept.path:
        row.message_files[key] = kept.path


async def _leave_out(
    run: RunContext, material: Material, plan: Plan, room: Room, row: Compaction
) -> None:
    """Let `row` replace the turns before those that the plan keeps by a summary."""
    turns = material.turns[: len(material.turns) - plan.kept]
    start = place_after(material.turns, plan.kept, material.end)
    limit = min(ContextSettings.now().SUMMARY_TOKENS, room.share(SUMMARY))
    replies = [turn for turn in turns if turn.calls or turn.parts[0][0] == "assistant"]
    summary = await summarize(run, replies, row.summary, limit) if replies else Summary()
    row.by = CompactionAuthor.MODEL
    row.summary = summary.text
    if not summary.text:
        if summary.problem:
            extra = {"run_id": run.row.pk}
            logger.warning("no summary by the model: %s", summary.problem, extra=extra)
        previous = material.previous.summary if material.previous else ""
        row.by = CompactionAuthor.JOURNAL
        row.summary = journal_summary(previous, replies, limit * BYTES_PER_TOKEN)
    row.from_run, row.from_turn = start
    row.clip_run, row.clip_turn = 0, 0
    row.files = files_of(material.previous, turns)
    messages = await _messages(run, row, start, room)
    opening = opening_text(
        messages, row.summary, row.by, material.sections, row.files, run.reminders(), room
    )
    row.summary, row.opening = _storable(row.summary), _storable(opening)
    row.files = [_storable(path) for path in row.files]


def _storable(text: str) -> str:
    """Return text that every database can store: a model may write a NUL."""
    return clean_text(text).replace("\x00", "\N{REPLACEMENT CHARACTER}")


async def _messages(
    run: RunContext, row: Compaction, before: Place, room: Room
) -> Sequence[UserMessage]:
    messages = await run.in_database(read_messages, run.row, before)
    limit = message_limit(len(messages), room)
    for message in messages:
        await _keep_message(run, row, message.key, message.text, limit)
    return [replace(message, path=row.message_files.get(message.key, "")) for message in messages]


MIDDLEWARE = (CompactionMiddleware(), EvictionMiddleware())
