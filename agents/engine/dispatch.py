"""Running the calls of one turn.

Calls that need nobody run first, in block order; neighbours that only read run side by side, all
others one at a time. What is left then waits for a person.
Invariant 7: one tool's failure is that tool's result.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import InterfaceError, InternalError, OperationalError
from pydantic import BaseModel

from agents.conf import vel_settings
from agents.engine.crash_points import CrashPoint, reached
from agents.engine.errors import FenceLost, StopReason
from agents.engine.history import INTERRUPTED
from agents.engine.journal import write_results, write_started
from agents.engine.journal_rows import Call, Outcome, Writer
from agents.engine.park import Question, approval_is_stale
from agents.engine.results import finished_event, render_result
from agents.engine.session import Session
from agents.engine.snapshots import add_changes, begin_changes
from agents.events.append import EventDraft, dump
from agents.middleware.base import Tool, ToolResult
from agents.middleware.input_names import input_names
from agents.middleware.inputs import checked_input
from agents.models import Effect, ToolCall
from agents.policy import Verdict, judge
from agents.services.errors import InvalidRequest
from agents.services.grants import find_grant, use_grant
from agents.services.memory_edits import propose_edit
from agents.states import OPEN_CALLS, ToolCallStatus
from memory.edits import MemoryEdit
from sandbox.policy import MAX_TIMEOUT

logger = logging.getLogger(__name__)

BACKSTOP_SECONDS = 15.0
"""The sandbox ends a command at its time limit; only if it fails to is the call given up."""


@dataclass(slots=True)
class Ready:
    """A call that may run now, with its tool and its checked input."""

    call: Call
    tool: Tool[Any]
    given: BaseModel
    grant_id: str = ""


def check_call(session: Session, name: str, raw_input: Any) -> tuple[Tool[Any], BaseModel] | str:
    """The tool and its checked input, or what is wrong, as the model should read it."""
    return checked_input(session.toolset, name, raw_input)


def judge_call(
    session: Session, tool: Tool[Any], given: BaseModel, raw_input: Any
) -> tuple[Verdict, MemoryEdit | None]:
    """The policy's verdict on a call, and what it would do to the memory, if it is that."""
    edit = tool.memory_edit(given) if tool.memory_edit is not None else None
    verdict = judge(
        session.spec,
        tool.name,
        tool.effect,
        raw_input,
        edits_memory=edit is not None,
        reads=input_names(tool.input_model),
    )
    return verdict, edit


async def run_open_calls(session: Session, calls: Sequence[Call]) -> list[Question]:
    """Run what may run, and return the questions about the calls that must wait for a person."""
    while True:
        await _close_interrupted(session, calls)
        ready = [item for call in calls if (item := await _prepare(session, call)) is not None]
        if not ready:
            return [_question(session, call) for call in calls if call.status in OPEN_CALLS]
        for group in _groups(ready):
            session.handle.check()
            if not await _run_group(session, group):
                break  # an approval has become stale: its call waits again


def _question(session: Session, call: Call) -> Question:
    raw_input = json.loads(call.edited_input or call.input)
    checked = check_call(session, call.tool, raw_input)
    assert not isinstance(checked, str)  # `_prepare` has closed such calls
    verdict, edit = judge_call(session, *checked, raw_input)
    return Question(call, verdict, edit)


def _groups(ready: Sequence[Ready]) -> list[list[Ready]]:
    groups: list[list[Ready]] = []
    for item in ready:
        reads = item.tool.effect == Effect.READ
        if reads and groups and groups[-1][0].tool.effect == Effect.READ:
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


async def _close_interrupted(session: Session, calls: Sequence[Call]) -> None:
    """Invariant 2: what was started by a lost driver and may have changed something stays so."""
    lost = [
        call
        for call in calls
        if call.status == ToolCallStatus.STARTED
        and call.effect != Effect.READ
        and (call.turn, call.position) not in session.started_here
    ]
    if not lost:
        return
    outcomes = []
    for call in lost:
        outcome = Outcome(
            call,
            ToolCallStatus.INTERRUPTED,
            result=json.dumps(INTERRUPTED),
            is_error=True,
            code="interrupted",
        )
        outcome.events.append(finished_event(call, INTERRUPTED, is_error=True, code="interrupted"))
        outcomes.append(outcome)
    await _store(session, outcomes)


async def _prepare(session: Session, call: Call) -> Ready | None:
    """What `call` needs to run now; None when it has ended or must wait."""
    runnable = (ToolCallStatus.PENDING, ToolCallStatus.APPROVED, ToolCallStatus.STARTED)
    if call.status not in runnable or (call.turn, call.position) in session.stale:
        return None
    raw_input = json.loads(call.edited_input or call.input)
    checked = check_call(session, call.tool, raw_input)
    if isinstance(checked, str):
        # The model's own calls are checked when they arrive: this is a person's edit, or a tool
        # that the agent has lost since.
        await _refuse(session, call, checked, "invalid_input")
        return None
    ready = Ready(call, *checked)
    if call.status == ToolCallStatus.STARTED:
        return ready
    verdict, edit = judge_call(session, *checked, raw_input)
    if verdict.action == "deny":
        await _deny(session, call, verdict)
        return None
    if call.status == ToolCallStatus.APPROVED:
        if edit is None:
            return ready
        # A decision on an edit of the memory makes it: this call was approved as something else.
        message = f"The memory is changed by write_memory, not by changing a call of {call.tool}."
        await _refuse(session, call, message, "invalid_input")
        return None
    if edit is not None:
        problem = await session.database.run(_problem_of, session.agent_id, edit)
        if problem is not None:
            await _refuse(session, call, problem, "memory_refused")
        return None
    if verdict.action == "ask":
        reads = input_names(ready.tool.input_model)
        grant = await session.database.run(
            find_grant, session.run, call.tool, raw_input, verdict.terms, reads
        )
        if grant is None:
            return None
        ready.grant_id = grant.id
    return ready


def _problem_of(agent_id: str, edit: MemoryEdit) -> str | None:
    """Why nobody needs to be asked about `edit`."""
    try:
        propose_edit(agent_id, edit)
    except InvalidRequest as problem:
        return problem.message
    return None


async def _refuse(session: Session, call: Call, message: str, code: str) -> None:
    """End a call that cannot run as it is."""
    started = call.status == ToolCallStatus.STARTED
    status = ToolCallStatus.FAILED if started else ToolCallStatus.INVALID
    outcome = Outcome(call, status, result=json.dumps(message), is_error=True, code=code)
    outcome.events.append(finished_event(call, message, is_error=True, code=code))
    await _store(session, [outcome])


async def _deny(session: Session, call: Call, verdict: Verdict) -> None:
    reason = f" Reason: {verdict.reason}" if verdict.reason else ""
    message = f"The policy does not allow this call; it was not made.{reason}"
    outcome = Outcome(call, ToolCallStatus.DENIED, dump(message), is_error=True, code="denied")
    denied = {"call_id": call.call_id, "reason": verdict.reason, "by": verdict.source}
    outcome.events.append(("tool.denied", denied))
    await _store(session, [outcome])


async def _run_group(session: Session, group: Sequence[Ready]) -> bool:
    """Run calls side by side and store their results as they come. False: one must ask again."""
    for item in group:
        if not await _start(session, item.call, item.grant_id):
            return False
    tasks = {asyncio.create_task(_run_one(session, item)): item for item in group}
    pending = set(tasks)
    try:
        while pending:
            with session.handle.interruptible():
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            outcomes = [task.result() for task in done]
            reached(CrashPoint.TOOL_DONE)
            await _store(session, outcomes, session.drafts())
            reached(CrashPoint.RESULTS_WRITTEN)
    finally:
        if pending:
            await _stop(session, {task: tasks[task] for task in pending})
    return True


async def _start(session: Session, call: Call, grant_id: str) -> bool:
    """Commit `started`, unless the commit of the reply did. False: the permission is stale."""
    place = (call.turn, call.position)
    if place in session.started_here:
        return True
    if not await session.database.run(start_call, session.writer, call, grant_id):
        session.stale.add(place)
        return False
    reached(CrashPoint.STARTED_WRITTEN)
    call.status = ToolCallStatus.STARTED
    call.attempt += 1
    session.started_here.add(place)
    return True


def start_call(writer: Writer, call: Call, grant_id: str = "") -> bool:
    """Commit that `call` is about to run.

    False, and nothing started, if its approval is stale or its grant not good any more.
    """
    if call.status == ToolCallStatus.APPROVED and approval_is_stale(writer, call):
        return False
    if grant_id and not use_grant(grant_id):
        return False
    data: dict[str, Any] = {"call_id": call.call_id, "attempt": call.attempt + 1}
    if grant_id:
        ToolCall.objects.filter(
            run_id=writer.run_id, turn=call.turn, position=call.position
        ).update(grant_id=grant_id)
        data["grant_id"] = grant_id
    write_started(writer, call, [("tool.started", data)])
    return True


async def _store(
    session: Session, outcomes: Sequence[Outcome], drafts: Sequence[EventDraft] = ()
) -> None:
    """Write results, and then hold the calls as they are now in the journal."""
    database = session.database
    # What a tool commits with its result may lock anything.
    write = database.run if any(outcome.commit for outcome in outcomes) else database.share
    await write(write_results, session.writer, outcomes, drafts)
    for outcome in outcomes:
        call = outcome.call
        call.status = outcome.status
        call.result = outcome.result
        call.is_error = outcome.is_error
        call.code = outcome.code


async def _run_one(session: Session, item: Ready) -> Outcome:
    """Invariant 7: whatever a tool does, it comes to one outcome.

    Only a stop, and the loss of the engine's own database or lease, pass through.
    """
    call, tool = item.call, item.tool
    asked = getattr(item.given, "timeout", None)
    limit = min(asked or session.spec.command_timeout or tool.time_limit, MAX_TIMEOUT)
    context = session.context(call, limit)
    try:
        async with asyncio.timeout(limit + BACKSTOP_SECONDS):
            await begin_changes(session, context, tool.effect)
            result = await tool.run(context, item.given)
    except TimeoutError:
        result = ToolResult(
            f"{call.tool} took longer than {limit:g} s and was stopped.",
            is_error=True,
            code="timeout",
        )
    except (OperationalError, InterfaceError, InternalError, FenceLost):
        # Not the tool's failure but this driver's: the database is away, or the run another's.
        raise
    except Exception as error:  # a tool is somebody else's code
        logger.exception(
            "a tool failed", extra={"run_id": session.writer.run_id, "tool": call.tool}
        )
        result = ToolResult(
            f"{call.tool} failed: {type(error).__name__}: {error}", is_error=True, code="exception"
        )
    outcome = outcome_of(call, result)
    await add_changes(session, tool.effect, outcome)
    return outcome


def outcome_of(call: Call, result: ToolResult) -> Outcome:
    """A tool's result as the journal stores it and watchers see it."""
    if call.edited_input and not result.blocks:
        # Invariant 4: the model's own call stays in history, so it must hear what ran instead.
        note = f"[This ran with an input changed by a person: {call.edited_input}]"
        text = result.content if isinstance(result.content, str) else dump(result.content)
        result = replace(result, content=f"{text}\n\n{note}")
    rendered, shown = render_result(result, vel_settings().RESULT_BYTES)
    status = ToolCallStatus.FAILED if result.is_error else ToolCallStatus.SUCCEEDED
    outcome = Outcome(
        call, status, rendered, result.is_error, result.code, list(result.events), result.commit
    )
    outcome.events.append(finished_event(call, shown, is_error=result.is_error, code=result.code))
    return outcome


async def _stop(session: Session, tasks: dict[asyncio.Task[Outcome], Ready]) -> None:
    """End calls whose run is being stopped, and store what is known of them, if that is allowed."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    reason = session.handle.stopping
    if reason is None or reason is StopReason.LEASE_LOST:
        return
    outcomes = []
    for task, item in tasks.items():
        if not task.cancelled() and task.exception() is None:
            outcomes.append(task.result())  # it ended by itself in the same moment
        elif reason is StopReason.DRAIN and item.tool.effect == Effect.READ:
            continue  # it runs again in another process
        else:
            outcomes.append(_stopped_outcome(item.call, reason))
    if outcomes:
        await _store(session, outcomes)


def _stopped_outcome(call: Call, reason: StopReason) -> Outcome:
    text = {
        StopReason.CANCEL: "The run was cancelled while this call ran; it was stopped half-way.",
        StopReason.WALL_TIME: "The run's time limit ended this call half-way.",
        StopReason.DRAIN: "The worker was shut down while this call ran; it was stopped half-way. "
        "Check before you repeat it.",
    }[reason]
    status = ToolCallStatus.INTERRUPTED if reason is StopReason.DRAIN else ToolCallStatus.CANCELLED
    outcome = Outcome(call, status, json.dumps(text), is_error=True, code=status.value)
    outcome.events.append(finished_event(call, text, is_error=True, code=status.value))
    return outcome
