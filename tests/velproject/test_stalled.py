"""Due tasks that no worker takes count as stalled after a time."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ
from pytest_django.fixtures import Settings

from agents.models import Agent, Run, RunClock
from agents.models.database_clock import now_sql
from agents.services.agent_definitions.actions import save_agent
from agents.services.runs.start import RunRequest, create_run
from agents.states import RunStatus
from velproject.stalled import Due, StallWatch, due_work


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def looks(*steps: tuple[float, set[int]]) -> list[bool]:
    """Return the results of a watch with a patience of 20 s for each (time, due tasks)."""
    clock = Clock()
    watch = StallWatch(patience=20.0, clock=clock)
    said = []
    for now, tasks in steps:
        clock.now = now
        due: Due = frozenset(("task", str(task)) for task in tasks)
        said.append(watch.looks_stalled(due))
    return said


def test_without_due_work_there_is_no_stall() -> None:
    assert looks((0, set()), (100, set())) == [False, False]


def test_unclaimed_work_is_a_stall_after_the_limit() -> None:
    assert looks((0, {1}), (19, {1}), (20, {1})) == [False, False, True]


def test_a_long_moving_queue_is_not_a_stall() -> None:
    assert looks((0, {1, 2, 3}), (20, {2, 3, 4}), (39, {3, 4, 5}), (58, {4, 5})) == [False] * 4


def test_more_work_behind_unclaimed_work_is_still_a_stall() -> None:
    assert looks((0, {1}), (10, {1, 2}), (20, {1, 2, 3})) == [False, False, True]


def test_a_restarted_worker_gets_twice_as_long_until_its_first_claim() -> None:
    said = looks((0, {1}), (20, {1}), (41, {1}), (59, {1}), (60, {1}), (139, {1}), (140, {1}))
    assert said == [False, True, False, False, True, False, True]
    taken = ((50, {2}), (69, {2}), (70, {2}))
    assert looks((0, {1}), (20, {1}), *taken) == [False, True, False, False, True]


def test_its_patience_has_an_end() -> None:
    stalls = [
        now
        for now, stalled in zip(
            range(2000), looks(*((now, {1}) for now in range(2000))), strict=True
        )
        if stalled
    ]
    assert [later - earlier for earlier, later in itertools.pairwise(stalls)] == [
        40, 80, 160, 300, 300, 300, 300, 300
    ]  # fmt: skip


def queued_run() -> Run:
    owner = get_user_model().objects.create(username="ada")
    save_agent(Agent(name="Echo", slug="echo", provider="scripted", owner=owner))
    return create_run(RunRequest(agent="echo", message="hi"), owner=owner).run


@pytest.mark.django_db
def test_queued_runs_and_due_tasks_are_due_work() -> None:
    run = queued_run()
    task = OrmQ.objects.get()
    assert due_work() == {("run", run.pk)}, "a task of this moment is not late yet"
    OrmQ.objects.update(lock=timezone.now() - timedelta(seconds=5))
    assert due_work() == {("run", run.pk), ("task", str(task.pk))}
    OrmQ.objects.update(lock=timezone.now() + timedelta(seconds=60))
    assert due_work() == {("run", run.pk)}, "a task that somebody took is not due"


@pytest.mark.django_db
def test_a_run_of_a_lost_driver_is_due_work_and_a_driven_one_is_not() -> None:
    run = queued_run()
    OrmQ.objects.all().delete()
    Run.objects.update(status=RunStatus.RUNNING)
    set_lease(run, "+ 30")
    assert due_work() == frozenset()
    set_lease(run, "- 30")
    assert due_work() == {("run", run.pk)}


@pytest.mark.django_db
def test_runs_that_wait_for_room_are_not_due(settings: Settings) -> None:
    driven = queued_run()
    Run.objects.update(status=RunStatus.RUNNING)
    set_lease(driven, "+ 30")
    owner = get_user_model().objects.get()
    create_run(RunRequest(agent="echo", message="next"), owner=owner)
    OrmQ.objects.all().delete()
    assert len(due_work()) == 1
    settings.WORKERS = 1
    settings.VEL = {**settings.VEL, "RUNS_PER_WORKER": 1}
    assert due_work() == frozenset()


@pytest.mark.django_db
def test_a_run_of_one_process_is_not_the_workers_business() -> None:
    queued_run()
    OrmQ.objects.all().delete()
    Run.objects.update(executor="host:1:abc")
    assert due_work() == frozenset()


def set_lease(run: Run, difference: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {RunClock._meta.db_table} SET lease_until = {now_sql()} {difference}"
            " WHERE run_id = %s",
            [run.pk],
        )


@pytest.mark.django_db
def test_runs_that_wait_for_disk_space_are_not_a_stall(settings: Settings) -> None:
    queued_run()
    assert due_work()
    settings.VEL = {**settings.VEL, "RESERVE_BYTES": 10**18}
    assert due_work() == frozenset()
