"""Many runs in several processes that share one budget: they exceed it by one call at most.

`make storm` uses more children and more calls than `make test`.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User

from agents.events.append import dump
from agents.features.budgets.actions import save_budget
from agents.features.budgets.models import Allowance, Budget, RunBudget
from agents.models import ApprovalRequest, Message, Run, RunClock, Thread
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.runs.wake import enqueue_run
from tests.support.cluster import Cluster
from tests.support.hang import HANG
from tests.support.messages_api import MessagesServer
from tests.support.messages_script import Request, ToolUse, Turn
from tests.support.runs import make_agent, make_user, start_run, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

CALL = 1_500
USAGE = {"input_tokens": 1_000, "output_tokens": 500, "cache_read_input_tokens": 0,
         "cache_creation_input_tokens": 0}  # fmt: skip
OUTPUT = 500
"""The maximum output of a call. The budgets of the tests cover only this, not the prompt."""


@dataclass(frozen=True)
class Size:
    """The number of runs, and the number of calls that their budget covers."""

    children: int
    calls: int


def sizes(small: Size, large: Size) -> pytest.MarkDecorator:
    """Run a test with the small size in `make test`, and with the large one in `make storm`."""
    storm = pytest.param(large, marks=pytest.mark.storm, id="storm")
    return pytest.mark.parametrize("size", [pytest.param(small, id="test"), storm])


def endless(request: Request) -> Turn:
    """Always reply with another call, which takes a moment."""
    look = ToolUse("ls", {"path": "/"})
    return Turn(text="Looking.", tool_uses=[look], usage=USAGE, chunk_delay=0.01)


@contextmanager
def cluster(
    directory: Path, lease: str = "30", script: Callable[[Request], Turn] = endless
) -> Iterator[tuple[Cluster, MessagesServer]]:
    with (
        MessagesServer(script) as server,
        Cluster(
            directory,
            workers=3,
            ANTHROPIC_API_KEY="test-key",
            ANTHROPIC_BASE_URL=server.url,
            VEL_TEST_LEASE=lease,
        ) as running,
    ):
        yield running, server


def an_agent(user: User, **fields: object) -> None:
    make_agent(
        user,
        provider="anthropic",
        model="claude-sonnet-5-5",
        max_output_tokens=OUTPUT,
        tools=["ls"],
        **fields,
    )


def family(user: User, limit: int, count: int) -> tuple[Run, list[Run]]:
    """Return a run that waits for its `count` children and shares `limit` tokens with them."""
    parent = start_run(user)
    Run.objects.filter(pk=parent.pk).update(status="waiting", wait_reason="children")
    Allowance.objects.create(run=parent, max_tokens=limit)
    spec = parent.agent_version.spec | {"max_tokens": None}
    children = []
    for number in range(count):
        thread = Thread.objects.create(
            agent=parent.thread.agent, owner=user, root=parent.thread, host=parent.thread.host
        )
        child = Run.objects.create(
            thread=thread,
            number=1,
            parent=parent,
            parent_index=number,
            depth=1,
            subagent_spec=spec,
            agent_version=parent.agent_version,
            owner=user,
            is_awaited=True,
        )
        RunClock.objects.create(run=child)
        said = dump([{"type": "text", "text": "Go"}])
        Message.objects.create(run=child, turn=0, role="user", content=said)
        children.append(child)
    return parent, children


def waiting(runs: list[Run]) -> bool:
    found = Run.objects.filter(pk__in=[run.pk for run in runs], wait_reason="budget")
    return found.count() == len(runs)


def check(allowance: Allowance, server: MessagesServer, limit: int) -> None:
    """Check that the model's server, the rows and the budget agree."""
    allowance.refresh_from_db()
    given = sum(sum(reply.usage[name] for name in USAGE) for reply in server.replies)
    assert allowance.used_tokens == given
    assert limit <= given < limit + CALL, "the budget was exceeded by more than one call"
    assert (allowance.reserved_tokens, allowance.reserved_microusd) == (0, 0)
    assert not RunBudget.objects.exclude(reserved_from="").exists()


@pytest.mark.slow
@sizes(Size(children=8, calls=12), Size(children=20, calls=30))
def test_children_in_three_processes_never_exceed_the_budget_of_their_parent(
    directory: Path, size: Size
) -> None:
    more = size.calls // 3
    user = make_user()
    an_agent(user)
    parent, children = family(user, size.calls * CALL + 1, size.children)
    allowance = parent.allowance
    with cluster(directory) as (_, server):
        for child in children:
            enqueue_run(child)
        wait_until(lambda: waiting(children), "all children to wait")
        check(allowance, server, size.calls * CALL + 1)
        # All runs share one approval request for the budget.
        request = ApprovalRequest.objects.get()
        assert (request.run_id, request.status) == (parent.pk, "pending")
        answer = DecisionRequest("edit", request.digest, {"more_tokens": more * CALL})
        decide_approval(request.pk, answer, by=user)
        wait_until(
            lambda: ApprovalRequest.objects.count() == 2 and waiting(children), "all to wait again"
        )
        check(allowance, server, (size.calls + more) * CALL + 1)
    for child in children:
        resumed = child.events.filter(type="run.resumed")
        assert resumed.count() == 1, "each is woken once"


@sizes(Size(children=4, calls=6), Size(children=20, calls=20))
def test_runs_in_three_processes_share_a_window(directory: Path, size: Size) -> None:
    user = make_user()
    an_agent(user)
    limit = size.calls * CALL
    # A day may end during the test.
    budget = save_budget(Budget(user=user, period="month", max_tokens=limit, max_cost=Decimal(100)))
    with cluster(directory) as (_, server):
        runs = [start_run(user, key=f"t{number}") for number in range(size.children)]
        wait_until(lambda: waiting(runs), "all runs to wait")
        window = budget.windows.get()
        check(window, server, limit)
        requests = list(ApprovalRequest.objects.filter(status="pending"))
        assert len(requests) == size.children
        boss = make_user("boss")
        boss.user_permissions.add(Permission.objects.get(codename="change_budget"))
        answer = DecisionRequest("approve", requests[-1].digest)
        decide_approval(requests[-1].pk, answer, by=boss)
        wait_until(lambda: waiting(runs), "all runs to wait again")
        wait_until(lambda: _settled(window, 2 * limit), "the second half to be used")
        wait_until(lambda: waiting(runs), "all runs to wait again")
        check(window, server, 2 * limit)


def _settled(window: Allowance, used: int) -> bool:
    window.refresh_from_db()
    return window.used_tokens >= used


@sizes(Size(children=4, calls=8), Size(children=20, calls=40))
def test_reservations_of_killed_drivers_are_returned_once(directory: Path, size: Size) -> None:
    user = make_user()
    an_agent(user)
    parent, children = family(user, size.calls * CALL, size.children)
    allowance = parent.allowance
    kills = (size.calls // 8, size.calls // 2)
    numbers, reached, killed = itertools.count(1), threading.Semaphore(0), threading.Semaphore(0)

    def script(request: Request) -> Turn:
        if next(numbers) in kills:  # all calls wait, with their reservations
            reached.release()
            assert killed.acquire(timeout=HANG)
        return endless(request)

    def holders() -> set[int]:
        rows = RunBudget.objects.exclude(reserved_from="")
        busy = rows.values_list("run__clock__lease_holder", flat=True)
        return {int(holder.split(":")[1]) for holder in busy if holder} & set(running.workers())

    with cluster(directory, lease="2", script=script) as (running, _):
        for child in children:
            enqueue_run(child)
        for _ in kills:
            assert reached.acquire(timeout=HANG)
            os.kill(min(wait_until(holders, "a driver with a reservation")), signal.SIGKILL)
            killed.release()
        wait_until(lambda: waiting(children), "all children to wait")
        allowance.refresh_from_db()
    assert (allowance.reserved_tokens, allowance.reserved_microusd) == (0, 0)
    stored = sum(
        reply.input_tokens + reply.output_tokens
        for reply in Message.objects.filter(role="assistant")
    )
    assert allowance.used_tokens == stored
    assert size.calls * CALL <= stored < (size.calls + 1) * CALL
    assert ApprovalRequest.objects.filter(status="pending").count() == 1
