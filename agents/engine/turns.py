"""The turns of a run: finish open calls, call the model, store its reply, until the run ends.

Two limits end a run with a clear reason: the number of turns and the wall time. For limits of
tokens and cost, a feature parks the run instead and asks a person for more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from agents.disk_space import is_used_up
from agents.engine.calls.admission import check_call, judge_call
from agents.engine.calls.dispatch import attempt_tool, failed_wrap, run_open_calls
from agents.engine.calls.outcomes import commit_with
from agents.engine.calls.results import called_event
from agents.engine.crash_points import CrashPoint, reached
from agents.engine.errors import Stopped, StopReason
from agents.engine.files.snapshots import to_its_end
from agents.engine.joining import join_messages
from agents.engine.model_call import StepRequest, attempt_call, call_model, part_id, renew_prompt
from agents.engine.prompt.history import BAD_ENDINGS, calls_of_turn, results_json
from agents.engine.review import review_reply
from agents.engine.session import Session
from agents.engine.storage.finish import complete_run, end_run, fail_run
from agents.engine.storage.journal import Call, Totals, write_events, write_reply
from agents.engine.storage.notes import insert_note, note_json, write_note
from agents.events.append import EventDraft, dump
from agents.events.catalogue.messages import (
    ReasoningCompleted,
    StepCompleted,
    TextCompleted,
)
from agents.events.catalogue.runs import Usage
from agents.events.catalogue.tool_calls import ToolStarted
from agents.kernel.middleware import Leave, Tell
from agents.kernel.park import End, Park, park
from agents.models import Effect
from agents.providers.base import ProviderError, Reply
from agents.providers.prices import cost_microusd
from agents.services.files.outside_changes import forget_state_before, outside_changes
from agents.services.runs.wake import lock_with_parent
from agents.states import ToolCallStatus
from agents.structured_output.levels import MOST_LEVELS


async def run_turns(session: Session) -> None:
    """Continue a run from its stored state until it ends or parks.

    Raises `Stopped`, `ProviderError` and `FenceLost`.
    """
    context, chain = session.context, session.chain
    session.call_model = chain.model_handler(context, attempt_call)
    session.call_tool = chain.tool_handler(
        context, partial(attempt_tool, session), partial(failed_wrap, session)
    )
    while True:
        session.handle.check()
        try:
            if not await _take_turn(session):
                return
        except Leave as leave:
            if await _let_go(session, leave.reason):
                return


async def _take_turn(session: Session) -> bool:
    """Finish the open calls, or call the model. Return False if the run has ended or is parked."""
    if session.open_calls:
        parking = await run_open_calls(session, session.open_calls)
        if parking is not None:
            if await _park(session, parking):
                return False
            session.open_calls = await session.database.run(
                calls_of_turn, session.run, session.open_calls[0].turn
            )
            return True
        session.say("user", results_json(session.open_calls))
        for late in session.late_notes:
            session.say("user", late)
        session.late_notes = []
        session.last_calls, session.open_calls = session.open_calls, []
    for item in session.chain.before_model:
        told = await item.before_model(session.context)
        if isinstance(told, Tell):
            await _tell_model(session, item.name, told)
        elif told is not None and await _let_go(session, told):
            return False
    return await _ask(session)


async def _ask(session: Session) -> bool:
    """Call the model for the next turn. Return False if the run has ended or is parked."""
    if session.parts.prompt_is_old:
        await renew_prompt(session)
    if session.handle.draining:
        raise Stopped(StopReason.DRAIN)
    if is_used_up():
        raise Stopped(StopReason.DISK_FULL)
    limit = limit_reached(session)
    if limit is not None:
        return not await _let_go(session, End(*limit))
    for item in session.chain.before_request:
        join = await item.before_request(session.context)
        if join is not None:
            await join_messages(session, join)
    return await _step(session)


async def _tell_model(session: Session, author: str, told: Tell) -> None:
    content = note_json(told.text)
    note = (session.writer, session.turn, content, told.events, author)
    await session.database.share(write_note, *note)
    session.say("user", content)


async def _let_go(session: Session, reason: Park | End) -> bool:
    """End or park the run.

    Returns True if there is nothing to wait for any more, so that the run continues.
    """
    if isinstance(reason, Park):
        return await _park(session, reason)
    await report(session)
    await session.database.run(end_run, session.writer, reason, session.active_ms())
    return True


async def _park(session: Session, parking: Park) -> bool:
    """Park the run. Return False if there is nothing to wait for, and the run continues."""
    for item in session.chain.on_park:
        await item.on_park(session.context, parking)
    active_ms = session.active_ms()
    if await session.database.run(park, session.writer, parking, active_ms, fail_run):
        return True
    session.keep_active(active_ms)
    return False


async def _step(session: Session) -> bool:
    """Call the model once and store the reply. Return False if the run has ended."""
    turn = session.turn + 1
    request = StepRequest.of(session)
    reply = await call_model(session, request)
    reached(CrashPoint.REPLIED)
    _check_reply(reply)
    review = await review_reply(session, turn, reply)
    reply = review.reply
    calls = _calls_of(session, turn, reply)
    ends = review.ends
    usage = reply.usage
    cost = 0 if session.provider.is_scripted else cost_microusd(session.spec.model, usage)
    session.stream.drop_parts()
    drafts = session.stream.take()
    drafts += _reply_events(turn, review.shown, calls)
    drafts += review.drafts
    if ends:
        drafts += await report_drafts(session)
    content = dump(reply.blocks)
    totals = Totals(usage, cost, session.active_ms())
    commits = request.commits + review.commits

    def write() -> None:
        # Commit the last reply together with the run's end: after a crash between the two, the
        # model would be called again.
        if ends:
            lock_with_parent(session.writer.run_id, session.writer.parent_id)
        request.noticed = write_reply(session.writer, turn, content, reply, calls, drafts, totals)
        if review.note:
            insert_note(session.writer, turn, review.note, review.author)
        for commit in commits:
            commit.write()
        if review.end is not None:
            fail_run(session.writer, review.end.code, review.end.message, 0)
        elif ends and reply.stop_reason in BAD_ENDINGS:
            fail_run(session.writer, *BAD_ENDINGS[reply.stop_reason], 0)
        elif ends:
            complete_run(session.writer, reply.stop_reason, 0, review.completed)

    # A write that locks more than its own clock must not share a transaction.
    await commit_with(session.database, write, commits, alone=ends)
    reached(CrashPoint.REPLY_WRITTEN)
    if ends:
        await forget_reported_state(session)
        return False
    session.turn = turn
    session.tokens += usage.total
    session.cost_microusd += cost or 0
    session.open_calls = calls
    session.started_here |= {call.place for call in calls if call.status == ToolCallStatus.STARTED}
    if reply.blocks:
        session.conversation.append("assistant", content)
    session.meter.replied(usage, content)
    if review.note:
        session.say("user", review.note)
    return True


def _check_reply(reply: Reply) -> None:
    """Raise `ProviderError` for a reply that cannot be stored or cannot be sent back."""
    uses = [block for block in reply.blocks if block["type"] == "tool_use"]
    ids = [block["id"] for block in uses]
    words = ids + [block["name"] for block in uses]
    odd = any(not 0 < len(word) <= 200 or "\x00" in word for word in words)
    if odd or len(set(ids)) < len(ids):
        raise ProviderError(
            "The model's reply has tool calls whose ids are not unique, or whose ids or names are "
            "empty, too long, or hold a NUL.",
            code="malformed_stream",
        )


def _calls_of(session: Session, turn: int, reply: Reply) -> list[Call]:
    """Return the reply's tool calls as rows of the journal, after checking their inputs."""
    calls: list[Call] = []
    for block in reply.blocks:
        if block["type"] != "tool_use":
            continue
        name = session.toolset.name_of(block["name"])
        broken = reply.broken_inputs.get(block["id"])
        checked = (
            "The input was not complete JSON: it was cut off, malformed, or nested deeper than "
            f"{MOST_LEVELS} levels. Send it again."
            if broken is not None
            else check_call(session, name, block["input"])
        )
        call = Call(
            turn=turn,
            position=len(calls),
            call_id=block["id"],
            tool=name,
            input=dump(block["input"]),
            effect=Effect.READ,
            status=ToolCallStatus.PENDING,
        )
        if isinstance(checked, str):
            call.status = ToolCallStatus.INVALID
            call.code = "invalid_input" if name in session.toolset.tools else "unknown_tool"
            call.is_error, call.result = True, dump(checked)
        else:
            call.effect = checked[0].effect
            verdict = judge_call(session, *checked, block["input"])
            if call.effect == Effect.READ and verdict.action == "allow":
                call.status = ToolCallStatus.STARTED
                call.attempt = 1
        calls.append(call)
    return calls


def _reply_events(turn: int, reply: Reply, calls: list[Call]) -> list[EventDraft]:
    drafts: list[EventDraft] = []
    for index, block in enumerate(reply.blocks):
        if block["type"] == "text":
            drafts.append(TextCompleted(part_id=part_id(turn, index), text=block["text"]))
        elif block["type"] == "thinking":
            text = block.get("thinking", "")
            drafts.append(ReasoningCompleted(part_id=part_id(turn, index), text=text))
    usage: Usage = {
        "input_tokens": reply.usage.input,
        "output_tokens": reply.usage.output,
        "cache_read_tokens": reply.usage.cache_read,
        "cache_write_tokens": reply.usage.cache_write,
    }
    if reply.usage.reasoning:
        usage["reasoning_tokens"] = reply.usage.reasoning
    drafts.append(StepCompleted(step=turn, finish_reason=reply.stop_reason, usage=usage))
    for call in calls:
        drafts.append(called_event(call))
        if call.status == ToolCallStatus.STARTED:
            drafts.append(ToolStarted(call_id=call.call_id, attempt=1))
    return drafts


logger = logging.getLogger(__name__)


async def report_drafts(session: Session) -> list[EventDraft]:
    """Return the event about changed files for the transaction that ends the run, if any."""
    location = session.files.location
    if location.own_directory is None or session.run.parent_id is not None:
        return []
    found = await to_its_end(session.threads, partial(outside_changes, location))
    return [found.event()] if found else []


async def report(session: Session) -> None:
    """Write the event about changed files, if the run does not end with its last reply."""
    drafts = await report_drafts(session)
    if drafts:
        await session.database.run(write_events, session.writer, drafts)
    await forget_reported_state(session)


async def forget_reported_state(session: Session) -> None:
    """Delete the stored state from before the run, which the report no longer needs."""
    if session.run.parent_id is None:
        try:
            await to_its_end(session.threads, partial(forget_state_before, session.files.location))
        except OSError as error:
            # If this fails, the next run reports these changes again.
            logger.warning("the state before the run stays: %s", error)


def limit_reached(session: Session) -> tuple[str, str] | None:
    """Return (code, message) of a limit that forbids another model call, or None."""
    spec = session.spec
    if session.turn >= spec.max_turns:
        return "limit_turns", f"The run reached its limit of {spec.max_turns} turns."
    return None


@contextmanager
def limit_wall_time(session: Session) -> Iterator[None]:
    """Limit the block to the rest of the run's wall time (`max_seconds`; None: no limit).

    After this time, the run's handle is stopped with `StopReason.WALL_TIME`. The driver then raises
    `Stopped` where it waits, or before its next step.
    """
    seconds = session.spec.max_seconds
    if seconds is None:
        yield
        return
    left = max(0.0, seconds - session.elapsed_seconds())
    timer = asyncio.get_running_loop().call_later(left, session.handle.stop, StopReason.WALL_TIME)
    try:
        yield
    finally:
        timer.cancel()
