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

from django.db import InterfaceError, InternalError, OperationalError

from agents.engine.admission import Ready, prepare_call, question_of, start_call
from agents.engine.crash_points import CrashPoint, reached
from agents.engine.errors import FenceLost, StopReason
from agents.engine.history import INTERRUPTED
from agents.engine.journal_rows import Call, Outcome
from agents.engine.outcomes import outcome_of, stopped_outcome, store_outcomes
from agents.engine.park import Question
from agents.engine.results import finished_event
from agents.engine.session import Session
from agents.engine.skill_ledger import note_skill_files
from agents.engine.snapshots import add_changes, begin_changes
from agents.middleware.base import ToolResult
from agents.models import Effect
from agents.states import OPEN_CALLS, ToolCallStatus
from sandbox.policy import MAX_TIMEOUT

logger = logging.getLogger(__name__)

BACKSTOP_SECONDS = 15.0
"""The sandbox ends a command at its time limit; only if it fails to is the call given up."""


async def run_open_calls(session: Session, calls: Sequence[Call]) -> list[Question]:
    """Run what may run, and return the questions about the calls that must wait for a person."""
    while True:
        await _close_interrupted(session, calls)
        ready = [item for call in calls if (item := await prepare_call(session, call)) is not None]
        if not ready:
            return [question_of(session, call) for call in calls if call.status in OPEN_CALLS]
        for group in _groups(ready):
            session.handle.check()
            if not await _run_group(session, group):
                break  # an approval has become stale: its call waits again


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
    await store_outcomes(session, outcomes)


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
            await store_outcomes(session, outcomes, session.drafts())
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
    note_skill_files(session, call, outcome)
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
            outcomes.append(stopped_outcome(item.call, reason))
    if outcomes:
        await store_outcomes(session, outcomes)
