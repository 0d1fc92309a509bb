"""Subagents of a run: start them for a call, and park the run until they have ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from agents.engine.calls.error_text import error_text
from agents.engine.session import Session
from agents.engine.storage.journal import Call, Waiting, Writer, check_fence
from agents.kernel.park import Locked, Park, Suspend
from agents.middleware.base import WaitForRuns
from agents.middleware.context import SubagentError, SubagentReport, TaskOrder
from agents.models import Run, RunClock, ToolCall
from agents.models.database_clock import DatabaseNow
from agents.services.errors import InvalidRequest
from agents.services.runs.control import cancel_run
from agents.services.runs.delegation import (
    ChildOrder,
    answer_of,
    awaited,
    children_of,
    start_children,
)
from agents.services.runs.wake import lock_run
from agents.states import RunStatus, WaitReason


class CallSubagents:
    """Implementation of `agents.middleware.context.Subagents` for one call."""

    def __init__(self, session: Session, call: Call) -> None:
        self._session = session
        self._call = call

    async def start(self, orders: Sequence[TaskOrder], at_once: int) -> list[str]:
        database = self._session.database
        return await database.run(_start, self._session, self._call, orders, at_once)

    async def report(self, run_ids: Sequence[str]) -> list[SubagentReport]:
        writer = self._session.writer
        reports = await self._session.database.run(_reports, writer.run_id, run_ids)
        return [self._for_model(report) for report in reports]

    async def cancel(self, run_id: str) -> SubagentReport:
        return self._for_model(
            await self._session.database.run(_cancel, self._session.writer, run_id)
        )

    def _for_model(self, report: SubagentReport) -> SubagentReport:
        """Return the report without directories of the host, which an error text can contain."""
        return replace(report, error=error_text(report.error, self._session.files.location))


def _start(session: Session, call: Call, orders: Sequence[TaskOrder], at_once: int) -> list[str]:
    writer = session.writer
    run = lock_run(writer.run_id)
    check_fence(writer)
    row = ToolCall.objects.get(run=run, turn=call.turn, position=call.position)
    if there := children_of(row):
        # The call continues after a pause: changes since its start, for example of the agent's
        # features, do not affect its subagents.
        return [child.id for child in there]
    made = []
    for order in orders:
        found = (part.for_child(order.subagent) for part in session.parts)
        inherited = [each for each in found if each is not None]
        if order.subagent.skills and not inherited:
            raise SubagentError(
                f"The subagent {order.subagent.name} works with skills, and no installed feature "
                "has them: its operator must install skills_app."
            )
        made.append(
            ChildOrder(
                order.index,
                order.spec.model_dump(mode="json"),
                order.message,
                "\n\n".join(each.note for each in inherited if each.note),
                [each.write for each in inherited],
            )
        )
    try:
        children = start_children(run, row, made, at_once=at_once)
    except InvalidRequest as problem:
        raise SubagentError(problem.message) from None
    return [child.id for child in children]


def _reports(parent_id: str, run_ids: Sequence[str]) -> list[SubagentReport]:
    children = Run.objects.filter(parent_id=parent_id).in_bulk(list(run_ids))
    missing = [run_id for run_id in run_ids if run_id not in children]
    if missing:
        raise SubagentError(f"You have started no subagent with the id {missing[0][:100]!r}.")
    return [_report(children[run_id]) for run_id in run_ids]


def _report(child: Run) -> SubagentReport:
    failure = ""
    if child.status == RunStatus.FAILED:
        failure = f"{child.error_code}: {child.error_message}"
    elif child.status == RunStatus.CANCELLED:
        reason = RunClock.objects.values_list("cancel_reason", flat=True).get(run=child)
        failure = f"It was cancelled{f': {reason}' if reason else ''}."
    return SubagentReport(
        run_id=child.id,
        index=child.parent_index,
        subagent=child.subagent,
        status=child.status,
        has_ended=child.has_ended,
        text=answer_of(child) if child.has_ended else "",
        error=failure,
    )


def _cancel(writer: Writer, run_id: str) -> SubagentReport:
    lock_run(writer.run_id)
    check_fence(writer)
    _reports(writer.run_id, [run_id])  # raises unless `run_id` is a child of this run
    cancel_run(run_id, by="its parent")
    return _reports(writer.run_id, [run_id])[0]


async def still_waits(session: Session, call: Call, wait: WaitForRuns) -> Waiting | None:
    """Return what a call waits for, or None if its result is available now.

    Raises `SubagentError` if this run did not start one of the runs in `wait`.
    """
    return await session.database.run(partial(_still_waits, session.writer, call, wait))


def _still_waits(writer: Writer, call: Call, wait: WaitForRuns) -> Waiting | None:
    reports = _reports(writer.run_id, wait.run_ids)
    if all(report.has_ended for report in reports):
        return None
    if wait.seconds is None:
        return Waiting(wait.run_ids, None)
    row = ToolCall.objects.get(run_id=writer.run_id, turn=call.turn, position=call.position)
    assert row.started_at is not None
    until = row.started_at.timestamp() + wait.seconds
    # Compare with the clock that wakes the run: with a slower one, it would wait again.
    clocks = RunClock.objects.filter(run_id=writer.run_id).annotate(now=DatabaseNow())
    now = clocks.values_list("now", flat=True).get()
    return Waiting(wait.run_ids, until) if now < until else None


def wait_for_children(waits: Sequence[Waiting]) -> Park:
    """Return a park until the runs of `waits` have ended, or until their earliest `until`."""
    return Park(WaitReason.CHILDREN, partial(_await_children, waits))


def _await_children(waits: Sequence[Waiting], locked: Locked) -> Suspend | None:
    """Return what the run waits for, or None if all awaited runs have already ended."""
    run = locked.run
    run_ids = sorted({run_id for wait in waits for run_id in wait.run_ids})
    run.children.filter(is_awaited=True).exclude(pk__in=run_ids).update(is_awaited=False)
    run.children.filter(pk__in=run_ids).update(is_awaited=True)
    if not awaited(run):
        return None
    until = min((wait.until for wait in waits if wait.until is not None), default=None)
    return Suspend({"child_run_ids": run_ids}, wake_at=until)
