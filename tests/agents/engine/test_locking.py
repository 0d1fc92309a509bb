"""Invariant 3: concurrent wakes, parks, cancels, decisions and ends of a run stay consistent.

No pair deadlocks and no update is lost, on SQLite and on PostgreSQL.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection, transaction

from agents.engine.errors import FenceLost
from agents.engine.loading import load_run
from agents.engine.storage.database import Database
from agents.engine.storage.finish import cancel_driven_run, complete_run, fail_run
from agents.engine.storage.journal import Call, Writer, write_events, write_results, write_started
from agents.engine.storage.lease import claim_run, hand_back, renew_leases
from agents.events.catalogue.messages import TextDelta
from agents.models import POOL, ApprovalRequest, Run, RunClock, Thread, ToolCall
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.errors import Conflict, ServiceError
from agents.services.files.workspaces import assign_sandbox_uid
from agents.services.runs.control import cancel_run, resume_run
from agents.services.runs.start import RunRequest, create_run
from agents.services.runs.wake import lock_run
from agents.spec import AgentSpec
from tests.agents.engine.by_hand import (
    a_call,
    at_once,
    claimed,
    committed,
    new_run,
    park,
    parked,
    success,
    with_calls,
)
from tests.agents.engine.invariants import check_run
from tests.agents.transition_guard import guarded_transitions
from tests.support.runs import make_user, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 3


@pytest.fixture(autouse=True)
def _guarded(db: None) -> Iterator[None]:
    with guarded_transitions():
        yield


REFUSALS = (ServiceError, FenceLost)
"""The errors that an action may raise when another action was faster."""


@dataclass
class Scene:
    """A run during its work, with its user, writer, requests and calls."""

    user: User
    run: Run
    writer: Writer | None = None
    requests: list[ApprovalRequest] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)


def message(scene: Scene) -> Run:
    request = RunRequest("tester", "And then?", thread=scene.run.thread_id, queue=True)
    return create_run(request, owner=scene.user).run


def decision(answer: str, number: int = 0) -> Callable[[Scene], object]:
    def decide(scene: Scene) -> object:
        request = scene.requests[number]
        return decide_approval(
            request.id, DecisionRequest(answer, request.digest, reason="so"), by=scene.user
        )

    return decide


def load(scene: Scene) -> object:
    """Load the run, the first step of a driver: this pins the skills of the run."""
    run = Run.objects.select_related("agent_version", "thread").get(pk=scene.run.pk)
    spec = AgentSpec.model_validate(run.agent_version.spec)
    return committed(load_run, scene.writer, run, spec, {})


def as_driver(function: Callable[..., Any], *arguments: Any) -> Callable[[Scene], object]:
    return lambda scene: committed(function, scene.writer, *arguments)


ANYBODY: dict[str, Callable[[Scene], object]] = {
    "cancel": lambda scene: cancel_run(scene.run.id, by="ada"),
    "message": message,
    "claim": lambda scene: committed(claim_run, scene.run.id, POOL, "another"),
    "resume": lambda scene: resume_run(scene.run.id),
}
WAITING = ANYBODY | {
    "approve": decision("approve"),
    "reject": decision("reject"),
    "approve the other": decision("approve", 1),
}
DRIVEN = ANYBODY | {
    "load": load,
    "park": lambda scene: committed(park, scene.writer, scene.calls[1]),
    "complete": as_driver(complete_run, "end_turn", 1),
    "fail": as_driver(fail_run, "code", "message", 1),
    "end cancelled": as_driver(cancel_driven_run, 1),
    "hand back": lambda scene: committed(hand_back, scene.writer),
    "events": as_driver(write_events, [TextDelta(part_id="1.0", text="a")]),
    "start": lambda scene: committed(write_started, scene.writer, scene.calls[1], []),
    "result": lambda scene: committed(write_results, scene.writer, [success(scene.calls[0])]),
    "renew": lambda scene: renew_leases({scene.run.id: scene.writer.fence}),
}
DRIVERS_OWN = {"load", "park", "complete", "fail", "end cancelled", "hand back", "start", "result"}
"""A driver does only one of these at a time."""


def waiting_scene() -> Scene:
    user, run = new_run()
    return Scene(user, run, requests=parked(run, 2))


def driven_scene() -> Scene:
    user, run = new_run()
    calls = [a_call(0, status="started", effect="read"), a_call(1)]
    return Scene(user, run, writer=with_calls(run, *calls), calls=calls)


def check_scene(scene: Scene, answers: dict[str, Any]) -> None:
    for name, answer in answers.items():
        if isinstance(answer, Exception) and not isinstance(answer, REFUSALS):
            raise AssertionError(f"{name} raised {answer!r}") from answer
    for run in Run.objects.filter(thread=scene.run.thread_id):
        if run.status == "completed":
            # The scene completes a run during its calls.
            ToolCall.objects.filter(run=run, finished_at=None).delete()
        check_run(run)
    scene.run.refresh_from_db()
    cancelled = answers.get("cancel")
    if isinstance(cancelled, Run) and not scene.run.has_ended:
        assert RunClock.objects.get(run=scene.run).cancel_requested, "a cancellation was lost"
        assert scene.run.status in ("running", "queued")


def both(scene: Scene, actions: dict[str, Callable[[Scene], object]], pair: tuple[str, str]) -> Any:
    answers = at_once(*(lambda action=actions[name]: action(scene) for name in pair))
    check_scene(scene, dict(zip(pair, answers, strict=True)))
    return answers


def pairs(actions: Iterable[str]) -> list[tuple[str, str]]:
    return [
        pair
        for pair in combinations_with_replacement(actions, 2)
        if not DRIVERS_OWN.issuperset(pair)
    ]


def some(pairs: list[tuple[str, str]], times: int) -> list[tuple[str, str]]:
    """Return pairs that use each action `times` times; the storms test all pairs.

    On SQLite, which runs writers one by one, each action is used half as often.
    """
    if connection.vendor == "sqlite":
        times = max(1, times // 2)
    uses: Counter[str] = Counter()
    chosen: list[tuple[str, str]] = []
    mixed = random.Random(3).sample(pairs, len(pairs))
    for most_or_least in (max, min):  # pairs of two missing actions first
        for pair in mixed:
            if most_or_least(uses[name] for name in pair) < times and pair not in chosen:
                chosen.append(pair)
                uses.update(pair)
    return chosen


@pytest.mark.slow
@pytest.mark.both_databases
def test_two_concurrent_actions_leave_a_parked_run_consistent() -> None:
    for pair in some(pairs(WAITING), times=4):
        both(waiting_scene(), WAITING, pair)


@pytest.mark.both_databases
def test_two_concurrent_actions_leave_a_driven_run_consistent() -> None:
    for pair in some(pairs(DRIVEN), times=4):
        both(driven_scene(), DRIVEN, pair)


@pytest.mark.storm
@pytest.mark.timeout(1800)
def test_any_two_concurrent_actions_repeatedly_leave_runs_consistent() -> None:
    for _ in range(40):
        for pair in pairs(WAITING):
            both(waiting_scene(), WAITING, pair)
        for pair in pairs(DRIVEN):
            both(driven_scene(), DRIVEN, pair)


@pytest.mark.slow
@pytest.mark.both_databases
def test_of_two_approvers_one_decides() -> None:
    for _ in range(ROUNDS):
        scene = waiting_scene()
        bob = User.objects.filter(username="bob").first() or make_user("bob")
        bob.user_permissions.add(Permission.objects.get(codename="approve_toolcall"))
        request = scene.requests[0]
        answers = at_once(
            lambda request=request, user=scene.user: decide_approval(
                request.id, DecisionRequest("approve", request.digest), by=user
            ),
            lambda request=request, user=bob: decide_approval(
                request.id, DecisionRequest("reject", request.digest), by=user
            ),
        )
        [taken] = [answer for answer in answers if isinstance(answer, ApprovalRequest)]
        [refused] = [answer for answer in answers if isinstance(answer, Exception)]
        assert isinstance(refused, Conflict)
        request.refresh_from_db()
        assert request.decision == taken.decision
        assert request.tool_call.status == f"{taken.decision}ed".replace("ee", "e")
        check_run(scene.run)


@pytest.mark.slow
@pytest.mark.both_databases
def test_two_concurrent_last_decisions_wake_the_run_once() -> None:
    for _ in range(ROUNDS):
        scene = waiting_scene()
        first, second = both(scene, WAITING, ("approve", "approve the other"))
        assert (first.status, second.status) == ("decided", "decided")
        scene.run.refresh_from_db()
        assert scene.run.status == "queued"
        assert scene.run.events.filter(type="run.resumed").count() == 1


@pytest.mark.slow
@pytest.mark.both_databases
def test_of_two_messages_to_a_free_thread_one_starts_a_run() -> None:
    for _ in range(ROUNDS):
        user, run = new_run()
        cancel_run(run.id, by="ada")
        request = RunRequest("tester", "Next", thread=run.thread_id)
        answers = at_once(*[lambda: create_run(request, owner=user)] * 2)  # noqa: B023
        assert sum(isinstance(answer, Conflict) for answer in answers) == 1
        assert Run.objects.filter(thread=run.thread_id, status="queued").count() == 1


@pytest.mark.both_databases
def test_a_concurrent_message_and_resumption_leave_one_active_run() -> None:
    for _ in range(ROUNDS):
        user, run = new_run()
        committed(fail_run, claimed(run), "code", "message", 1)
        request = RunRequest("tester", "Next", thread=run.thread_id)
        created, resumed = at_once(
            lambda request=request, user=user: create_run(request, owner=user),
            lambda run=run: resume_run(run.id),
        )
        assert isinstance(created, Conflict) != isinstance(resumed, Conflict), (created, resumed)
        assert Run.objects.filter(thread=run.thread_id, status="queued").count() == 1


@pytest.mark.root
@pytest.mark.both_databases
def test_threads_that_start_concurrently_get_separate_accounts() -> None:
    for _ in range(ROUNDS):
        threads = [new_run()[1].thread for _ in range(3)]
        actions = [lambda t=thread: committed(assign_sandbox_uid, t) for thread in threads]
        assert at_once(*actions) == [None] * 3
    uids = Thread.objects.values_list("sandbox_uid", flat=True)
    assert None not in uids
    assert len(set(uids)) == len(uids)


# Orders that rarely happen by chance ------------------------------------------------------------


@contextmanager
def open_transaction(
    begin: Callable[[], object], then: Callable[[], object] = lambda: None
) -> Iterator[Callable[[], None]]:
    """Run `begin` in a transaction on another connection, and keep the transaction open.

    Yields a function that runs `then` in it and commits.
    """
    begun, finish = threading.Event(), threading.Event()
    errors: list[Exception] = []

    def work() -> None:
        try:
            with transaction.atomic():
                begin()
                begun.set()
                finish.wait(60)
                then()
        except Exception as error:  # noqa: BLE001  # raised again on the test's own thread
            errors.append(error)
        finally:
            begun.set()
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait(60)

    def commit() -> None:
        finish.set()
        thread.join()
        if errors:
            raise errors[0]

    try:
        yield commit
    finally:
        finish.set()
        thread.join()


def in_thread(action: Callable[[], object]) -> threading.Thread:
    def work() -> None:
        try:
            action()
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def wait_until_it_waits(thread: threading.Thread) -> None:
    """Wait until the thread has ended, or its statement waits for a lock.

    Other processes use other databases of the same server. SQLite does not show waiting statements,
    but there no other write is possible.
    """
    if connection.vendor != "postgresql":
        thread.join(0.2)
        return

    def waits() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)"
                " WHERE NOT granted AND datname = current_database()"
            )
            return cursor.fetchone() is not None

    wait_until(lambda: not thread.is_alive() or waits(), "the thread to wait for a lock")


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="needs PostgreSQL")
@pytest.mark.both_databases
def test_a_late_decision_does_not_wait_for_locks() -> None:
    """Only one of many decisions on a request is in time; the others must not block the run."""
    scene = waiting_scene()
    answer = DecisionRequest("approve", scene.requests[0].digest)
    decide_approval(scene.requests[0].pk, answer, by=scene.user)
    refused: list[ServiceError] = []

    def late() -> None:
        with pytest.raises(Conflict, match="decided already") as error:
            decide_approval(scene.requests[0].pk, answer, by=scene.user)
        refused.append(error.value)

    with open_transaction(lambda: lock_run(scene.run.pk)) as commit:
        deciding = in_thread(late)
        wait_until_it_waits(deciding)
        assert refused
        commit()
        deciding.join()


@pytest.mark.slow_cases
@pytest.mark.both_databases
@pytest.mark.parametrize("end", ["complete", "fail", "end cancelled", "cancel"])
def test_a_message_that_finds_the_thread_busy_is_not_forgotten_by_the_end(end: str) -> None:
    """The end looks for the next message while that message, uncommitted, sees an active run."""
    scene = driven_scene() if end != "cancel" else waiting_scene()
    with open_transaction(lambda: message(scene)) as commit:
        ending = in_thread(lambda: (DRIVEN | WAITING)[end](scene))
        wait_until_it_waits(ending)
        commit()
        ending.join()
    following = Run.objects.get(thread=scene.run.thread_id, number=scene.run.number + 1)
    assert following.status == "queued"
    check_run(following)


@pytest.mark.both_databases
def test_a_cancellation_that_comes_before_the_parking_ends_the_run() -> None:
    scene = driven_scene()
    cancel_run(scene.run.id, by="ada", reason="enough")
    committed(park, scene.writer, scene.calls[1])
    scene.run.refresh_from_db()
    assert scene.run.status == "cancelled"
    assert not ApprovalRequest.objects.filter(run=scene.run, status="pending").exists()
    ended = scene.run.events.get(type="run.cancelled")
    assert "enough" in ended.data


@pytest.mark.both_databases
def test_cancelling_one_waiting_message_starts_no_other() -> None:
    scene = driven_scene()
    second, third = message(scene), message(scene)
    cancel_run(second.id, by="ada")
    third.refresh_from_db()
    assert third.status == "pending"
    for run in (scene.run, second, third):
        check_run(run)


@pytest.mark.both_databases
def test_a_resumed_run_is_not_cancelled_by_a_request_before_its_failure() -> None:
    scene = driven_scene()
    cancel_run(scene.run.id, by="ada")
    committed(fail_run, scene.writer, "code", "message", 1)
    resume_run(scene.run.id)
    assert not RunClock.objects.get(run=scene.run).cancel_requested


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="needs PostgreSQL")
@pytest.mark.both_databases
@pytest.mark.parametrize("end", ["complete", "park"])
def test_no_batch_holds_a_clock_while_it_waits_for_a_run(end: str) -> None:
    """Deltas lock the clock and an end locks the run.

    Together in one transaction, this order deadlocks with a cancellation, which locks the run and
    then the clock.
    """
    scene = driven_scene()

    async def drive() -> list[object]:
        database = Database(asyncio.get_running_loop())
        try:
            return await asyncio.gather(
                database.share(write_events, scene.writer, [TextDelta(part_id="1.0", text="a")]),
                database.run(DRIVEN[end], scene),
                return_exceptions=True,
            )
        finally:
            database.close()

    def take_the_clock() -> None:
        assert RunClock.objects.select_for_update(nowait=True).get(run=scene.run)

    answers: list[object] = []
    with open_transaction(lambda: lock_run(scene.run.id), then=take_the_clock) as commit:
        driver = in_thread(lambda: answers.extend(asyncio.run(drive())))
        wait_until_it_waits(driver)
        commit()
        driver.join()
    assert answers == [None, None]


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="needs PostgreSQL")
@pytest.mark.both_databases
def test_a_driver_that_settles_the_skills_takes_the_run_before_its_clock() -> None:
    scene = driven_scene()

    def take_the_clock() -> None:
        assert RunClock.objects.select_for_update(nowait=True).get(run=scene.run)

    with open_transaction(lambda: lock_run(scene.run.id), then=take_the_clock) as commit:
        driver = in_thread(lambda: load(scene))
        wait_until_it_waits(driver)
        commit()
        driver.join()
    scene.run.refresh_from_db()
    assert scene.run.has_begun


@pytest.mark.both_databases
@pytest.mark.parametrize("end", ["complete", "cancel"])
def test_a_waiting_message_is_cancelled_while_the_run_before_it_ends(end: str) -> None:
    scene = driven_scene() if end == "complete" else waiting_scene()
    removed, following = message(scene), message(scene)

    def begin() -> None:
        lock_run(scene.run.pk)
        Thread.objects.select_for_update(no_key=True).get(pk=scene.run.thread_id)

    with open_transaction(begin, lambda: (DRIVEN | WAITING)[end](scene)) as commit:
        cancelling = in_thread(lambda: cancel_run(removed.pk, by="ada"))
        wait_until_it_waits(cancelling)
        commit()
        cancelling.join()
    removed.refresh_from_db()
    following.refresh_from_db()
    assert removed.status == "cancelled"
    assert following.status == "queued"
    check_run(following)
