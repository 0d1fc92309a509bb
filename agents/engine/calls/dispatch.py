"""Execution of the tool calls of one turn.

Calls that need no approval run first, in the model's order. Adjacent calls that only read run in
parallel, all others alone. The remaining calls then wait for a person.

Invariant 7: a failure of a tool becomes the result of its call.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from django.db import InterfaceError, InternalError, OperationalError

from agents.engine.calls.admission import ask_about, prepare_call, refuse_call, start_call
from agents.engine.calls.context import CallContext
from agents.engine.calls.delegation import CallSubagents, still_waits, wait_for_children
from agents.engine.calls.error_text import error_content
from agents.engine.calls.outcomes import outcome_of, stopped_outcome, store_outcomes
from agents.engine.calls.results import finished_event
from agents.engine.crash_points import CrashPoint, reached
from agents.engine.errors import FenceLost, Stopped, StopReason
from agents.engine.files.snapshots import add_changes, begin_changes
from agents.engine.gate import CheckedCall, Unfit
from agents.engine.prompt.history import INTERRUPTED
from agents.engine.session import Session
from agents.engine.storage.journal import Call, Outcome, write_attempt, write_events
from agents.events.catalogue.tool_calls import ToolStarted
from agents.kernel.middleware import Leave, Refusal, ToolCallRequest
from agents.kernel.park import End, Park
from agents.middleware.base import ToolResult, WaitForRuns
from agents.middleware.run_parts import FinishedCall
from agents.models import Effect
from agents.states import OPEN_CALLS, ToolCallStatus
from agents.telemetry.tool_watch import watched_tool_call
from sandbox.policy import MAX_TIMEOUT

logger = logging.getLogger(__name__)

BACKSTOP_SECONDS = 15.0
"""The sandbox ends a command at its time limit. The call is abandoned only if that fails."""


async def run_open_calls(session: Session, calls: Sequence[Call]) -> Park | None:
    """Run the calls that may run. Return how the run waits for the others, or None.

    As long as a call waits for other runs, no approval is requested. Raises `Leave` if a middleware
    releases the run, and `Stopped`.
    """
    while True:
        await _close_interrupted(session, calls)
        ready = [item for call in calls if (item := await prepare_call(session, call)) is not None]
        if not ready and session.waits:
            waits = list(session.waits.values())
            session.waits.clear()
            return wait_for_children(waits)
        if not ready:
            still_open = [call for call in calls if call.status in OPEN_CALLS]
            if not still_open:
                return None
            park = await ask_about(session, still_open)
            if park is not None:
                return park
            continue  # the call has ended instead
        for group in _groups(ready):
            session.handle.check()
            if not await _run_group(session, group):
                break  # the call has ended, or needs another decision


def _groups(ready: Sequence[CheckedCall]) -> list[list[CheckedCall]]:
    groups: list[list[CheckedCall]] = []
    for item in ready:
        if groups and _runs_beside_others(item) and _runs_beside_others(groups[-1][0]):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def _runs_beside_others(item: CheckedCall) -> bool:
    return item.tool.effect == Effect.READ and not item.tool.runs_alone


async def _close_interrupted(session: Session, calls: Sequence[Call]) -> None:
    """Close calls that a lost driver started and that may have changed something.

    The model then learns that they may have happened (invariant 2).
    """
    lost = [
        call
        for call in calls
        if call.status == ToolCallStatus.STARTED
        and call.effect != Effect.READ
        and call.place not in session.started_here
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


async def _run_group(session: Session, group: Sequence[CheckedCall]) -> bool:
    """Run calls in parallel, and store each result when it arrives.

    Returns False if a call has ended before, or needs another decision.
    """
    for item in group:
        goes_on = item.tool.outlives_driver and item.call.status == ToolCallStatus.STARTED
        if not goes_on and not await _start(session, item):
            return False
    tasks = {asyncio.create_task(_run_one(session, item)): item for item in group}
    pending = set(tasks)
    try:
        while pending:
            with session.handle.interruptible():
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            ended = [task.result() for task in done]
            outcomes = [outcome for outcome in ended if outcome is not None]
            reached(CrashPoint.TOOL_DONE)
            await store_outcomes(session, outcomes, session.drafts())
            reached(CrashPoint.RESULTS_WRITTEN)
    finally:
        if pending:
            await _stop(session, {task: tasks[task] for task in pending})
    if session.leaving:
        leave = session.leaving[0]
        session.leaving.clear()
        raise leave
    return True


async def _start(session: Session, item: CheckedCall) -> bool:
    """Commit the event `started` of a call, unless it was committed with the model's reply.

    Returns False if the call cannot start.
    """
    call, gate = item.call, session.gate
    if call.place in session.started_here:
        return True
    starting = await gate.confirm(item)
    if isinstance(starting, Unfit):
        await refuse_call(session, call, starting.message, starting.code)
        return False
    if starting is None:
        return False
    start = (start_call, session.writer, call, starting, item.grant_id)
    if not await session.database.run(*start):
        gate.withdraw(call)
        return False
    reached(CrashPoint.STARTED_WRITTEN)
    call.status = ToolCallStatus.STARTED
    call.attempt += 1
    session.started_here.add(call.place)
    return True


async def _run_one(session: Session, item: CheckedCall) -> Outcome | None:
    """Run one call, and return exactly one outcome, whatever the tool does (invariant 7).

    Returns None if the call continues later. Either it waits for other runs (see `session.waits`),
    or its middleware releases the run (see `session.leaving`). Only a stop, and the loss of the
    engine's own database or lease, are raised.
    """
    call, tool = item.call, item.tool
    request = _Request(
        call,
        tool.effect,
        item=item,
        leaves_machine=tool.leaves_machine,
        is_whole=tool.is_whole,
    )
    result = await _made_with_wraps(session, request)
    if result is None:
        return None
    outcome = outcome_of(call, result)
    outcome.commits = request.commits
    await add_changes(session.files.snapshots, session.threads, tool.effect, outcome)
    _finish_parts(session, call, outcome)
    return outcome


@dataclass
class _Request(ToolCallRequest):
    """A call with its tool, and the result of its last attempt."""

    item: CheckedCall = field(kw_only=True)
    attempts: int = 0
    result: ToolResult | None = None


class _Waits(BaseException):
    """Raised through all wraps if the call waits for other runs, so there is no result yet."""


async def _made_with_wraps(session: Session, request: _Request) -> ToolResult | None:
    """Run the call through all middleware wraps.

    Returns None without a result: the call waits for other runs, or a wrap stops the run here. The
    error of a wrap becomes the call's result, with the exceptions of `failed_wrap`.
    """
    item = request.item
    try:
        return await session.call_tool(request)
    except _Waits:
        return None
    except Leave as leave:
        if isinstance(leave.reason, End) or request.effect == Effect.READ:
            # If the run continues in spite of this, that is another attempt.
            session.started_here.discard(item.call.place)
            session.leaving.append(leave)
            return None
        error: Exception = RuntimeError("a call that may change something cannot wait")
    except Exception as problem:  # noqa: BLE001  # logged below
        error = problem
    return failed_wrap(session, request, error, request.result)


def failed_wrap(
    session: Session, request: ToolCallRequest, error: Exception, made: ToolResult | None
) -> ToolResult:
    """Return the result of a call during which a middleware raised `error`.

    `made` is the result that the middleware received, if any. Raises `error` again if it is a
    failure of Vel's database, `FenceLost` or `Stopped`.
    """
    if isinstance(error, (OperationalError, InterfaceError, InternalError, FenceLost, Stopped)):
        raise error
    call = request.row
    extra = {"run_id": session.writer.run_id, "tool": call.tool}
    logger.error("a middleware failed around a tool call", exc_info=error, extra=extra)
    text = f"A middleware failed around {call.tool}: {type(error).__name__}: {error}."
    if made is None:
        return _for_model(session, call, ToolResult(text, is_error=True, code="exception"))
    text += " The call itself was made: check what it did before you repeat it."
    result = replace(made, content=text, is_error=True, code="exception", blocks=False)
    return _for_model(session, call, result)


async def attempt_tool(session: Session, request: ToolCallRequest) -> ToolResult:
    """Make one attempt of a call: the innermost handler of all wraps.

    The first attempt is already in the journal; later ones are added.
    """
    assert isinstance(request, _Request)
    if request.attempts:
        refusal = await _begin_again(session, request)
        if refusal is not None:
            return ToolResult(refusal.message, is_error=True, code=refusal.code)
    request.attempts += 1
    result = await _attempt(session, request.item)
    if result is None:
        raise _Waits
    request.result = result
    return result


async def _begin_again(session: Session, request: _Request) -> Refusal | None:
    """Commit another attempt of a call. Return the refusal of a middleware, or None."""
    call = request.row
    if request.effect != Effect.READ:
        raise RuntimeError(
            f"{call.tool} may have changed something, so it cannot be called again. Call the "
            "handler of a tool once unless the effect of the call is `read`."
        )
    for item in session.chain.check_call:
        refusal = await item.check_call(session.context, request)
        if refusal is not None:
            await session.database.share(write_events, session.writer, refusal.events)
            return refusal
    started = ToolStarted(call_id=call.call_id, attempt=call.attempt + 1)
    await session.database.share(write_attempt, session.writer, call, [started])
    call.attempt += 1
    return None


def _finish_parts(session: Session, call: Call, outcome: Outcome) -> None:
    """Add rows of features about the call to the transaction that stores `outcome`."""
    finished = FinishedCall(
        session.writer.run_id,
        session.writer.thread_id,
        call.call_id,
        call.tool,
        call.edited_input or call.input,
        outcome.is_error,
        session.toolset.tools.keys(),
    )
    writes = [outcome.commit, *(part.finished(finished) for part in session.parts)]
    steps = [write for write in writes if write is not None]
    if len(steps) < 2:
        outcome.commit = steps[0] if steps else None
        return

    def commit() -> None:
        for write in steps:
            write()

    outcome.commit = commit


async def _attempt(session: Session, item: CheckedCall) -> ToolResult | None:
    """Run the tool once. Return its result, or None if the call waits for other runs."""
    call = item.call
    place = (call.turn, call.position)
    given = call.edited_input or call.input
    with watched_tool_call(call.tool, call.call_id, place, call.attempt, given) as watch:
        watch.waits = item.tool.outlives_driver
        result = await _made(session, item)
        if result is not None and result.is_error:
            result = _for_model(session, call, result)
        if result is not None:
            watch.result = result.content
            watch.error = (result.code or "error") if result.is_error else ""
        return result


def _for_model(session: Session, call: Call, result: ToolResult) -> ToolResult:
    """Return an error result without internal details, which are logged instead."""
    try:
        given = json.loads(call.edited_input or call.input)
    except ValueError:
        given = None
    path = given.get("path") if isinstance(given, dict) else None
    content = error_content(
        result.content,
        session.files.location,
        blocks=result.blocks,
        given=path if isinstance(path, str) else None,
    )
    if content == result.content:
        return result
    logger.warning(
        "the error of a tool has details of this host: %s",
        result.content,
        extra={"run_id": session.writer.run_id, "tool": call.tool},
    )
    return replace(result, content=content)


async def _made(session: Session, item: CheckedCall) -> ToolResult | None:
    call, tool = item.call, item.tool
    limit = tool.time_limit
    if tool.has_timeout_field:
        asked = getattr(item.given, "timeout", None)
        limit = min(asked or session.spec.command_timeout or limit, MAX_TIMEOUT)
    context = CallContext(session, call, limit)
    try:
        async with asyncio.timeout(limit + BACKSTOP_SECONDS):
            await begin_changes(session.files.snapshots, context, tool.effect)
            return await _result(session, call, await tool.run(context, item.given))
    except TimeoutError:
        return ToolResult(
            f"{call.tool} took longer than {limit:g} s and was stopped.",
            is_error=True,
            code="timeout",
        )
    except (OperationalError, InterfaceError, InternalError, FenceLost):
        # This is not a failure of the tool: the driver has lost the database or the run.
        raise
    except Exception as error:  # tools are third-party code
        logger.exception(
            "a tool failed", extra={"run_id": session.writer.run_id, "tool": call.tool}
        )
        code = "connection" if isinstance(error, ConnectionError) else "exception"
        return ToolResult(
            f"{call.tool} failed: {type(error).__name__}: {error}", is_error=True, code=code
        )
    finally:
        context.close()


async def _result(
    session: Session, call: Call, given: ToolResult | WaitForRuns
) -> ToolResult | None:
    """Return the result of a call, or None if it waits for other runs."""
    if isinstance(given, ToolResult):
        return given
    waiting = await still_waits(session, call, given)
    if waiting is None:
        return given.answer(await CallSubagents(session, call).report(given.run_ids))
    session.waits[call.place] = waiting
    return None


async def _stop(session: Session, tasks: dict[asyncio.Task[Outcome | None], CheckedCall]) -> None:
    """Stop the calls of a run that is being stopped, and store their outcomes if possible."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    reason = session.handle.stopping
    if reason is None or reason is StopReason.LEASE_LOST:
        return
    outcomes = []
    for task, item in tasks.items():
        if not task.cancelled() and task.exception() is None:
            if (ended := task.result()) is not None:
                outcomes.append(ended)  # the call ended normally at the same time
        elif reason is StopReason.DRAIN and item.tool.effect == Effect.READ:
            continue  # the call runs again in another process
        else:
            outcomes.append(stopped_outcome(item.call, reason))
    if outcomes:
        await store_outcomes(session, outcomes, session.drafts())
