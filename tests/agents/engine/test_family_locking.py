"""Concurrent wakes, ends, cancellations and parks of parents and children stay consistent.

Like `test_locking`, which covers one run: no pair deadlocks, and each wake-up happens once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from agents.engine.calls.delegation import _cancel
from agents.engine.loading import load_run
from agents.engine.storage.database import Database
from agents.engine.storage.finish import cancel_driven_run, complete_run, fail_run, stop_driving
from agents.engine.storage.journal import Writer, check_fence, write_events
from agents.engine.storage.lease import claim_run
from agents.events.catalogue.messages import TextDelta
from agents.models import POOL, ApprovalRequest, Run, RunClock, ToolCall
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.runs.control import cancel_run
from agents.services.runs.wake import lock_run, wake_due
from agents.spec import AgentSpec
from tests.agents.engine.by_hand import a_call, at_once, claim, committed, park, with_calls
from tests.agents.engine.families import claimed_with_calls, new_parent, park_for, spawn
from tests.agents.engine.invariants import check_family, check_run
from tests.agents.engine.test_locking import (
    REFUSALS,
    ROUNDS,
    in_thread,
    open_transaction,
    pairs,
    some,
    wait_until_it_waits,
)
from tests.agents.transition_guard import guarded_transitions

pytestmark = pytest.mark.django_db(transaction=True)

PAST = 1_000_000.0


@pytest.fixture(autouse=True)
def _guarded(db: None) -> Iterator[None]:
    with guarded_transitions():
        yield


@dataclass
class Family:
    """A parent and its children during their work, with a writer for each driven run."""

    parent: Run
    children: list[Run]
    writers: dict[str, Writer]
    grandchildren: list[Run] = field(default_factory=list)
    request: ApprovalRequest | None = None

    def members(self) -> list[Run]:
        return list(Run.objects.filter(agent_version=self.parent.agent_version_id))


Action = Callable[[Family], object]


def by(who: Callable[[Family], Run], function: Callable[..., Any], *arguments: Any) -> Action:
    """Return an action of a driver, in one transaction."""
    return lambda family: committed(function, family.writers[who(family).pk], *arguments)


def cancel(who: Callable[[Family], Run]) -> Action:
    return lambda family: cancel_run(who(family).pk, by="ada")


def claims(who: Callable[[Family], Run]) -> Action:
    return lambda family: committed(claim_run, who(family).pk, POOL, "another")


def load(family: Family) -> object:
    run = Run.objects.select_related("agent_version", "thread").get(pk=family.children[0].pk)
    spec = AgentSpec.model_validate(run.spec)
    return committed(load_run, family.writers[run.pk], run, spec, {})


def the_time_is_over(family: Family) -> object:
    while committed(wake_due):
        pass
    return None


def asks(writer: Writer) -> None:
    park(writer, a_call(1))


def approve(family: Family) -> object:
    assert family.request is not None
    answer = DecisionRequest("approve", family.request.digest)
    return decide_approval(family.request.pk, answer, by=family.parent.owner)


def parent(family: Family) -> Run:
    return family.parent


def first(family: Family) -> Run:
    return family.children[0]


def second(family: Family) -> Run:
    return family.children[1]


def third(family: Family) -> Run:
    return family.children[2]


def below(family: Family) -> Run:
    return family.grandchildren[0]


# A parent parked for three children: two are driven, and the third is queued.

PARKED: dict[str, Action] = {
    "first ends": by(first, complete_run, "end_turn", 1),
    "first fails": by(first, fail_run, "code", "message", 1),
    "first ends cancelled": by(first, cancel_driven_run, 1),
    "first is handed back": by(first, stop_driving, 1),
    "first asks": by(first, asks),
    "first begins": load,
    "second ends": by(second, complete_run, "end_turn", 1),
    "cancel the parent": cancel(parent),
    "cancel first": cancel(first),
    "cancel third": cancel(third),
    "claim third": claims(third),
    "the time is over": the_time_is_over,
}


def parked_family() -> Family:
    _, run = new_parent()
    writer = claimed_with_calls(run)
    children = committed(spawn, writer, 3)
    writers = {child.pk: with_calls(child, a_call(1)) for child in children[:2]}
    assert committed(park_for, writer, children, PAST)
    return Family(run, children, writers)


# A driven parent with children: one is driven, one waits for approval.

DRIVEN: dict[str, Action] = {
    "the parent spawns": lambda family: committed(spawn, family.writers[family.parent.pk], 2, 1),
    "the parent parks": lambda family: committed(
        park_for, family.writers[family.parent.pk], family.children
    ),
    "the parent ends": by(parent, complete_run, "end_turn", 1),
    "the parent fails": by(parent, fail_run, "code", "message", 1),
    "the parent ends cancelled": by(parent, cancel_driven_run, 1),
    "the parent is handed back": by(parent, stop_driving, 1),
    "the parent cancels first": lambda family: committed(
        _cancel, family.writers[family.parent.pk], family.children[0].pk
    ),
    "the parent writes": by(parent, write_events, [TextDelta(part_id="1.0", text="a")]),
    "first ends": by(first, complete_run, "end_turn", 1),
    "first asks": by(first, asks),
    "cancel the parent": cancel(parent),
    "cancel second": cancel(second),
    "approve second": approve,
    "claim third": claims(third),
}


def driven_family() -> Family:
    _, run = new_parent()
    writer = claimed_with_calls(run, 2)
    children = committed(spawn, writer, 3)
    writers = {run.pk: writer, children[0].pk: with_calls(children[0], a_call(1))}
    committed(park, with_calls(children[1], a_call()), a_call())
    request = ApprovalRequest.objects.get(run=children[1])
    return Family(run, children, writers, request=request)


# A parent parked for a driven child, which also has a child.

DEEP: dict[str, Action] = {
    "first parks": lambda family: committed(
        park_for, family.writers[family.children[0].pk], family.grandchildren
    ),
    "first ends": by(first, complete_run, "end_turn", 1),
    "first fails": by(first, fail_run, "code", "message", 1),
    "below ends": by(below, complete_run, "end_turn", 1),
    "below is handed back": by(below, stop_driving, 1),
    "cancel the parent": cancel(parent),
    "cancel first": cancel(first),
    "cancel below": cancel(below),
    "the time is over": the_time_is_over,
}


def deep_family() -> Family:
    _, run = new_parent()
    writer = claimed_with_calls(run)
    children = committed(spawn, writer, 1)
    middle = claimed_with_calls(children[0])
    grandchildren = committed(spawn, middle, 1)
    lowest = with_calls(grandchildren[0], a_call(1))
    assert committed(park_for, writer, children, PAST)
    writers = {middle.run_id: middle, lowest.run_id: lowest}
    return Family(run, children, writers, grandchildren)


def check_members(family: Family, answers: dict[str, Any]) -> None:
    for name, answer in answers.items():
        if isinstance(answer, Exception) and not isinstance(answer, REFUSALS):
            raise AssertionError(f"{name} raised {answer!r}") from answer
    for run in family.members():
        if run.status == "completed":
            # The scene completes a run during its calls.
            left = ToolCall.objects.filter(run=run, finished_at=None)
            left.update(status="cancelled", finished_at=timezone.now())
        check_run(run)
        check_family(run)
    for name, answer in answers.items():
        if name.startswith("cancel ") and isinstance(answer, Run):
            answer.refresh_from_db()
            asked = RunClock.objects.get(run=answer).cancel_requested
            assert answer.has_ended or asked, "a cancellation was lost"
    resumed = family.parent.events.filter(type="run.resumed").count()
    assert resumed <= family.parent.events.filter(type="run.suspended").count()


def possible(actions: dict[str, Action]) -> list[tuple[str, str]]:
    """Return all pairs in which each driver does at most one step."""
    drivers = ("first", "second", "below", "the parent")
    return [
        pair
        for pair in pairs(actions)
        if not any(all(name.startswith(driver) for name in pair) for driver in drivers)
    ]


def check_pairs(
    make: Callable[[], Family], actions: dict[str, Action], chosen: list[tuple[str, str]]
) -> None:
    for pair in chosen:
        family = make()
        answers = at_once(*(partial(actions[name], family) for name in pair))
        check_members(family, dict(zip(pair, answers, strict=True)))
        Run.objects.filter(parent__parent=family.parent).delete()
        Run.objects.filter(parent=family.parent).delete()
        family.parent.delete()


@pytest.mark.both_databases
def test_two_concurrent_actions_leave_a_parked_family_consistent() -> None:
    check_pairs(parked_family, PARKED, some(possible(PARKED), times=2))


@pytest.mark.slow
@pytest.mark.both_databases
def test_two_concurrent_actions_leave_a_driven_family_consistent() -> None:
    check_pairs(driven_family, DRIVEN, some(possible(DRIVEN), times=2))


@pytest.mark.slow
@pytest.mark.both_databases
def test_two_concurrent_actions_leave_three_generations_consistent() -> None:
    check_pairs(deep_family, DEEP, some(possible(DEEP), times=2))


@pytest.mark.storm
@pytest.mark.timeout(1800)
def test_any_two_concurrent_actions_repeatedly_leave_families_consistent() -> None:
    for _ in range(10):
        check_pairs(parked_family, PARKED, possible(PARKED))
        check_pairs(driven_family, DRIVEN, possible(DRIVEN))
        check_pairs(deep_family, DEEP, possible(DEEP))


@pytest.mark.both_databases
def test_two_last_children_that_end_concurrently_wake_their_parent_once() -> None:
    for _ in range(ROUNDS):
        family = parked_family()
        cancel_run(family.children[2].pk, by="ada")
        ends = (PARKED["first ends"], PARKED["second ends"])
        assert at_once(*(partial(end, family) for end in ends)) == [None, None]
        family.parent.refresh_from_db()
        assert family.parent.status == "queued"
        assert family.parent.events.filter(type="run.resumed").count() == 1


@pytest.mark.slow
@pytest.mark.both_databases
def test_a_parent_does_not_park_if_its_last_child_has_ended() -> None:
    family = driven_family()
    for child in family.children[1:]:
        cancel_run(child.pk, by="ada")
    committed(complete_run, family.writers[family.children[0].pk], "end_turn", 1)
    assert not committed(park_for, family.writers[family.parent.pk], family.children)
    family.parent.refresh_from_db()
    assert family.parent.status == "running"
    committed(check_fence, family.writers[family.parent.pk])


@pytest.mark.slow
@pytest.mark.both_databases
def test_a_parent_that_was_cancelled_before_it_parks_takes_its_children_with_it() -> None:
    family = driven_family()
    cancel_run(family.parent.pk, by="ada")
    committed(spawn, family.writers[family.parent.pk], 2, 1)  # its driver does not know this yet
    assert committed(park_for, family.writers[family.parent.pk], family.children)
    family.parent.refresh_from_db()
    assert family.parent.status == "cancelled"
    check_family(family.parent)


# Orders that rarely happen by chance ------------------------------------------------------------

on_postgresql = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="needs PostgreSQL")


@pytest.mark.both_databases
@on_postgresql
@pytest.mark.parametrize("end", ["first parks", "first ends"])
def test_a_child_that_parks_locks_its_parents_row_before_its_own(end: str) -> None:
    """A cancellation of the family locks parents before children."""
    family = deep_family()

    def take_the_child() -> None:
        assert Run.objects.select_for_update(nowait=True).get(pk=family.children[0].pk)

    with open_transaction(lambda: lock_run(family.parent.pk), then=take_the_child) as commit:
        driver = in_thread(lambda: DEEP[end](family))
        wait_until_it_waits(driver)
        commit()
        driver.join()


@pytest.mark.slow
@pytest.mark.both_databases
@on_postgresql
def test_the_sweeper_holds_no_lock_on_a_child_while_it_waits_for_the_parent() -> None:
    family = deep_family()
    committed(park_for, family.writers[family.children[0].pk], family.grandchildren, PAST - 1)

    def take_the_child() -> None:
        assert Run.objects.select_for_update(nowait=True).get(pk=family.children[0].pk)

    with open_transaction(lambda: lock_run(family.parent.pk), then=take_the_child) as commit:
        sweeper = in_thread(lambda: the_time_is_over(family))
        wait_until_it_waits(sweeper)
        commit()
        sweeper.join()
    for run in (family.parent, family.children[0]):
        run.refresh_from_db()
        assert run.status == "queued"


@pytest.mark.slow
@pytest.mark.both_databases
@on_postgresql
def test_deltas_of_siblings_yield_to_a_cancellation_of_all() -> None:
    """A batch of deltas and a cancellation may lock the same clocks in different orders."""
    family = parked_family()
    writers = [family.writers[child.pk] for child in family.children[:2]]

    def hold(number: int) -> object:
        with connection.cursor() as cursor:
            # PostgreSQL looks for deadlocks here first, so this transaction would fail.
            cursor.execute("SET LOCAL deadlock_timeout = '600ms'")
        clocks = RunClock.objects.select_for_update(no_key=True)
        return clocks.get(run=family.children[number])

    async def drive() -> list[object]:
        database = Database(asyncio.get_running_loop())
        gate = threading.Event()
        try:
            database.submit(gate.wait)  # so that one batch has both
            both = [
                database.submit(write_events, each, [TextDelta(part_id="1.0", text="a")])
                for each in writers
            ]
            gate.set()
            return await asyncio.gather(*both)
        finally:
            database.close()

    answers: list[object] = []
    with open_transaction(lambda: hold(1), then=lambda: hold(0)) as commit:
        driver = in_thread(lambda: answers.extend(asyncio.run(drive())))
        wait_until_it_waits(driver)
        commit()
        driver.join()
    assert answers == [None, None]


@pytest.mark.slow
@pytest.mark.both_databases
def test_any_process_may_end_a_cancelled_run_of_a_dead_process() -> None:
    """The parent's end requests the cancellation; the killed command cannot drive the child."""
    family = driven_family()
    child = family.children[0]
    Run.objects.filter(pk=child.pk).update(executor="elsewhere:1:gone")
    assert claim(child) is None
    committed(complete_run, family.writers[family.parent.pk], "end_turn", 1)
    RunClock.objects.filter(run=child).update(lease_until=PAST)
    assert claim(child) is not None


@pytest.mark.slow
@pytest.mark.both_databases
def test_a_driver_that_hands_back_a_cancelled_run_ends_it() -> None:
    """This process may be the only one that can claim the run, and it is shutting down."""
    family = driven_family()
    committed(complete_run, family.writers[family.parent.pk], "end_turn", 1)
    child = family.children[0]
    committed(stop_driving, family.writers[child.pk], 1)
    child.refresh_from_db()
    assert child.status == "cancelled"
    check_run(child)
