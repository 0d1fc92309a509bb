"""A driver's steps, one at a time and without a host: claim, reply, start, finish, park."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from threading import Barrier, Thread
from typing import Any, TypeVar

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import F
from django_q.models import OrmQ

from agents.engine.calls.admission import start_call
from agents.engine.calls.results import called_event
from agents.engine.storage.finish import fail_run
from agents.engine.storage.journal import Call, Outcome, Totals, Writer, write_reply
from agents.engine.storage.lease import Claim, claim_run
from agents.events.append import dump
from agents.events.catalogue.tool_calls import ToolCompleted
from agents.features.approvals.gate import may_start
from agents.features.approvals.requests import Question, wait_for_people
from agents.kernel.park import park as kernel_park
from agents.models import POOL, ApprovalRequest, Run, RunClock
from agents.policy import Verdict
from agents.providers.base import Reply, Usage
from tests.support.hang import HANG
from tests.support.runs import make_agent, make_user, start_run

T = TypeVar("T")

HOUR = 3600.0


def committed(function: Callable[..., T], *arguments: Any) -> T:
    """Run the function in its own transaction, as the engine does."""
    with transaction.atomic():
        return function(*arguments)


def new_run(**fields: Any) -> tuple[User, Run]:
    """Create a queued run of ada's. Its agent requires approval for writes."""
    user = User.objects.filter(username="ada").first()
    if user is None:
        user = make_user()
        make_agent(user, interrupt_on={"write_file": True})
    return user, start_run(user, **fields)


def claim(run: Run, holder: str = "here") -> Claim | None:
    """Claim the run as a worker does, and delete its queued tasks."""
    for task in OrmQ.objects.all():
        if task.task["args"] == (run.id,):
            OrmQ.objects.filter(pk=task.pk).delete()
    return committed(claim_run, run.id, POOL, holder)


def claimed(run: Run) -> Writer:
    """Claim a run that is free, and return its writer."""
    won = claim(run)
    assert won is not None
    return Writer(run.id, run.thread_id, won.fence, run.parent_id)


def let_lease_expire(run: Run) -> None:
    RunClock.objects.filter(run=run).update(lease_until=F("lease_until") - HOUR)


def a_call(
    position: int = 0, *, turn: int = 1, status: str = "pending", effect: str = "write"
) -> Call:
    tool = "ls" if effect == "read" else "write_file"
    given = {"path": "/"} if effect == "read" else {"path": f"/{position}", "content": "x"}
    attempt = int(status == "started")
    return Call(
        turn, position, f"call_{turn}_{position}", tool, dump(given), effect, status, attempt
    )


def reply_with(writer: Writer, calls: Sequence[Call], turn: int = 1) -> None:
    """Store a reply with these calls. Call it in a transaction."""
    blocks = [{"type": "text", "text": f"Turn {turn}."}] + [
        {"type": "tool_use", "id": call.call_id, "name": call.tool, "input": {}} for call in calls
    ]
    usage = Usage(input=10, output=2)
    reply = Reply(blocks, "tool_use" if calls else "end_turn", usage, "by-hand")
    drafts = [called_event(call) for call in calls]
    write_reply(writer, turn, dump(blocks), reply, calls, drafts, Totals(usage, 7, 3))


def with_calls(run: Run, *calls: Call) -> Writer:
    """Claim the run and store a reply with these calls."""
    writer = claimed(run)
    committed(reply_with, writer, calls)
    return writer


def start(writer: Writer, call: Call, grant_id: str = "") -> bool:
    """Start a call if it is still permitted. Call it in a transaction."""
    return start_call(writer, call, partial(may_start, writer, call, grant_id), grant_id)


def park(writer: Writer, *calls: Call) -> None:
    """Request approval for each call. Call it in a transaction."""
    questions = [Question(call, Verdict("ask", "interrupt_on")) for call in calls]
    kernel_park(writer, wait_for_people(questions), 1, fail_run)


def parked(run: Run, count: int = 1) -> list[ApprovalRequest]:
    """Claim the run and park it with `count` requests, in the order of their calls."""
    calls = [a_call(position) for position in range(count)]
    committed(park, with_calls(run, *calls), *calls)
    return list(ApprovalRequest.objects.filter(run=run).order_by("tool_call__position"))


def success(call: Call) -> Outcome:
    finished = ToolCompleted(call_id=call.call_id, output="ok")
    return Outcome(call, "succeeded", dump("ok"), events=[finished])


def at_once(*actions: Callable[[], Any]) -> list[Any]:
    """Start the actions at the same time, each with its own thread and connection.

    Returns the result of each action or the exception that it raised. If an action does not end,
    the test fails with the stack of each thread.
    """
    start = Barrier(len(actions))
    answers: list[Any] = [None] * len(actions)

    def one(number: int) -> None:
        try:
            connection.ensure_connection()
            start.wait(timeout=HANG)
            answers[number] = actions[number]()
        except Exception as error:  # noqa: BLE001  # the test checks the exception
            answers[number] = error
        finally:
            connection.close()

    threads = [Thread(target=one, args=(number,), daemon=True) for number in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    if any(thread.is_alive() for thread in threads):
        pytest.fail(f"An action did not end in {HANG:.0f} seconds.\n{_stacks(threads)}")
    return answers


def _stacks(threads: Sequence[Thread]) -> str:
    frames = sys._current_frames()
    return "\n".join(
        f"{thread.name}:\n" + "".join(traceback.format_stack(frames[thread.ident]))
        if thread.ident in frames
        else f"{thread.name}: ended"
        for thread in threads
    )
