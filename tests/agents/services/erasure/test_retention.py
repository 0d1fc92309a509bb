"""Data that retention removes, and data that it keeps."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import OperationalError, connection
from django.utils import timezone
from django_q.models import Task

from agents.engine.process import pruner as pruner_module
from agents.engine.process.pruner import Pruner
from agents.features.notifications.models import Notification, NotificationTarget
from agents.models import (
    ApiToken,
    AuditEntry,
    BackgroundJob,
    IdempotencyKey,
    Message,
    RequestCount,
    Run,
    RunEvent,
    Thread,
)
from agents.models.audit import AuditIsSealed
from agents.services.background_jobs import take_background_job
from agents.services.erasure import retention
from agents.services.erasure.actions import erase_thread, erasures_wait
from agents.services.erasure.retention import Keep, old_threads, prune, what_is_old
from agents.settings import RetentionSettings
from agents.states import RunStatus
from tests.agents.api.rows import make_agent, make_run, make_user
from tests.agents.engine.by_hand import at_once
from tests.agents.services.erasure.test_actions import delegated, talked
from tests.support.hang import HANG
from tests.support.planting import make_row

NOTHING = Keep(threads=0, tokens=0, failed_tasks=0, audit=0, features={})

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ann() -> User:
    make_agent(sandbox=False)
    return make_user("ann")


def ago(days: float) -> datetime:
    return timezone.now() - timedelta(days=days)


def aged(run: Run, days: float) -> Run:
    Thread.objects.filter(pk=run.thread_id).update(created_at=ago(days))
    Run.objects.filter(pk=run.pk).update(created_at=ago(days), ended_at=ago(days))
    return run


def kept() -> set[str]:
    return set(Run.every.values_list("pk", flat=True))


def test_the_last_run_determines_the_age_of_a_thread(ann: User) -> None:
    old, young = aged(talked(ann), 91), aged(talked(ann), 89)
    goes_on = aged(talked(ann), 200)
    later = talked(ann, thread=goes_on.thread_id)
    keep = replace(NOTHING, threads=90)
    assert what_is_old(keep) == {"thread": 1, "run": 1}
    removed = prune(keep)
    assert (removed["thread"], removed["run"], removed["message"]) == (1, 1, 2)
    assert kept() == {young.pk, goes_on.pk, later.pk}
    assert old.pk not in kept()
    assert what_is_old(keep) == {}
    assert AuditEntry.objects.get(action="thread.erased").note == "quiet for 90 days"


@pytest.mark.parametrize(
    "status", [RunStatus.PENDING, RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING]
)
def test_a_run_that_has_not_ended_is_never_old(ann: User, status: str) -> None:
    run = aged(talked(ann), 400)
    Run.objects.filter(pk=run.pk).update(status=status, ended_at=None)
    assert prune(replace(NOTHING, threads=1)) == {}
    assert kept() == {run.pk}


def test_a_new_thread_is_not_old_and_a_locked_one_stops_nothing(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = aged(talked(ann), 91), aged(talked(ann), 91)
    new = aged(talked(ann), 91)
    Thread.objects.filter(pk=new.thread_id).update(created_at=ago(1))  # like that of a fork
    assert {row.pk for row in old_threads(90)} == {first.thread_id, second.thread_id}

    def meanwhile(thread_id: str, **terms: Any) -> None:
        if thread_id == first.thread_id:
            Run.objects.filter(pk=first.pk).update(status=RunStatus.QUEUED)
        erase_thread(thread_id, **terms)

    monkeypatch.setattr(retention, "erase_thread", meanwhile)
    prune(replace(NOTHING, threads=90))
    assert kept() == {first.pk, new.pk}


def test_a_subagent_keeps_its_thread(ann: User) -> None:
    run = talked(ann)
    (child,) = delegated(run)
    Run.objects.update(status=RunStatus.COMPLETED)
    aged(run, 400)
    Run.objects.filter(pk=child.pk).update(ended_at=ago(1))
    assert not old_threads(90).exists()
    Run.objects.filter(pk=child.pk).update(ended_at=ago(91))
    assert [row.pk for row in old_threads(90)] == [run.thread_id]
    assert what_is_old(replace(NOTHING, threads=90)) == {"thread": 1, "run": 2}


def test_a_thread_used_since_the_search_stays(ann: User) -> None:
    run = aged(talked(ann), 91)
    Run.objects.filter(pk=run.pk).update(ended_at=ago(3))
    with pytest.raises(Exception, match="used since"):
        erase_thread(run.thread_id, by=None, days=90)
    assert not erasures_wait()


def test_each_kind_has_its_own_retention_time(ann: User) -> None:
    run = aged(talked(ann), 400)
    for age, status in ((31, "delivered"), (31, "pending"), (29, "given_up")):
        given = {
            "status": status,
            "target": make_row(NotificationTarget, {}, "x"),
            "run": run,
        }
        row = make_row(Notification, given, "x")
        Notification.objects.filter(pk=row.pk).update(created_at=ago(age))
    for name, ended in (("old", ago(91)), ("ended", ago(89)), ("good", None)):
        ApiToken.objects.create(user=ann, name=name, digest=name, expires_at=ended)
    ApiToken.objects.create(user=ann, name="revoked", digest="r", revoked_at=ago(91))
    for name, age in (("old", 31), ("young", 29)):
        Task.objects.create(id=name, name=name, func="f", started=ago(age), stopped=ago(age))
        IdempotencyKey.objects.create(owner=ann, key=name, body_hash="")
        IdempotencyKey.objects.filter(key=name).update(created_at=ago(age))
    minute = int(timezone.now().timestamp() // 60)
    RequestCount.objects.create(subject="old", minute=minute - 61)
    RequestCount.objects.create(subject="now", minute=minute)
    Session.objects.create(session_key="gone", expire_date=ago(1))
    each = Keep(1, 1, 1, 1, {"notification": 1})
    assert prune(each, stop=lambda: True) == {}  # a worker that stops
    assert Session.objects.exists()
    assert what_is_old(NOTHING) == {"idempotencykey": 1, "requestcount": 1}  # 0 means forever
    keep = replace(Keep.of_settings(), threads=0)
    told = what_is_old(keep)
    assert told == {
        "notification": 1,
        "apitoken": 2,
        "task": 1,
        "idempotencykey": 1,
        "requestcount": 1,
    }
    assert prune(keep) == told
    assert set(Notification.objects.values_list("status", flat=True)) == {"pending", "given_up"}
    assert set(ApiToken.objects.values_list("name", flat=True)) == {"ended", "good"}
    assert [row.name for row in Task.objects.all()] == ["young"]
    assert [row.subject for row in RequestCount.objects.all()] == ["now"]
    assert not Session.objects.exists()
    assert run.pk in kept()  # by default threads are kept forever


def test_the_audit_log_has_its_own_retention_time_and_records_pruning(ann: User) -> None:
    for day in (400, 366, 2):
        run = talked(ann)
        erase_thread(run.thread_id, by=ann)
        entry = AuditEntry.objects.order_by("pk").last()
        assert entry is not None
        with connection.cursor() as cursor:
            cursor.execute(
                'UPDATE "agents_auditentry" SET created_at = %s WHERE id = %s',
                [connection.ops.adapt_datetimefield_value(ago(day)), entry.pk],
            )
    prune(NOTHING)
    assert AuditEntry.objects.count() == 4
    assert prune(replace(NOTHING, audit=365))["auditentry"] == 3
    assert [entry.action for entry in AuditEntry.objects.order_by("pk")] == [
        "thread.erased",
        "audit.pruned",
    ]
    with pytest.raises(AuditIsSealed):
        AuditEntry.objects.all().delete()


def test_a_background_job_is_taken_by_one_and_again_when_it_is_due() -> None:
    taken = at_once(*[lambda: take_background_job("prune", 3600)] * 4)
    assert sorted(taken) == [False, False, False, True]
    assert not take_background_job("prune", 3600)
    BackgroundJob.objects.update(due_at=0)
    assert sorted(at_once(*[lambda: take_background_job("prune", 3600)] * 4)).count(True) == 1


@pytest.fixture
def pruner() -> Pruner:
    return Pruner()


def test_workers_prune_only_if_configured(
    ann: User, pruner: Pruner, settings: pytest.FixtureRequest
) -> None:
    run = aged(talked(ann), 91)
    settings.VEL = {**settings.VEL, "KEEP_THREADS": 90}  # type: ignore[attr-defined]
    pruner.hurry()
    pruner.join()
    assert kept() == {run.pk}
    settings.VEL = {**settings.VEL, "PRUNE_HOURS": 24}  # type: ignore[attr-defined]
    assert RetentionSettings.now().PRUNE_HOURS == 24
    pruner.hurry()
    pruner.join()
    assert kept() == set()
    again = aged(talked(ann), 91)
    pruner.hurry()
    pruner.join()
    assert kept() == {again.pk}  # not due before tomorrow


def test_a_worker_finishes_erasures_even_without_pruning(ann: User, pruner: Pruner) -> None:
    erase_thread(talked(ann).thread_id, by=ann)
    pruner.look()
    pruner.join()
    assert erasures_wait()  # it has started just now, and checks later
    pruner.hurry()
    pruner.join()
    assert not erasures_wait()
    pruner.close()
    erase_thread(talked(ann).thread_id, by=ann)
    pruner.hurry()
    pruner.join()
    assert erasures_wait()


def test_one_pruner_works_at_a_time_and_repeats_after_a_request(
    pruner: Pruner, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Semaphore(0), threading.Semaphore(0)
    at_work: list[Callable[[], bool]] = []
    most: list[int] = []

    def work(stop: Callable[[], bool]) -> None:
        at_work.append(stop)
        most.append(len(at_work))
        begun.release()
        go_on.acquire(timeout=HANG)
        at_work.pop()

    monkeypatch.setattr(pruner_module, "_do_what_is_due", work)
    pruner.hurry()
    assert begun.acquire(timeout=HANG)
    pruner.hurry()
    pruner.hurry()
    go_on.release()
    assert begun.acquire(timeout=HANG)
    assert not at_work[0]()
    pruner.hurry()
    pruner.close()
    assert at_work[0]()  # it has to end after the current transaction
    go_on.release()
    pruner.join()
    assert most == [1, 1]


def test_a_request_is_not_lost_while_the_work_ends(
    pruner: Pruner, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[None] = []

    class AskingConnection:
        """The thread closes its connection last. At this moment another thread asks for work."""

        def close(self) -> None:
            if len(passes) == 1:
                pruner.hurry()

    monkeypatch.setattr(pruner_module, "connection", AskingConnection())
    monkeypatch.setattr(pruner_module, "_do_what_is_due", lambda stop: passes.append(None))
    pruner.hurry()
    pruner.join()
    assert len(passes) == 2


def test_a_failure_ends_no_later_work(pruner: Pruner, monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[None] = []

    def fail(stop: Callable[[], bool]) -> None:
        passes.append(None)
        raise (OperationalError, ValueError)[len(passes) - 1]("broken")

    monkeypatch.setattr(pruner_module, "_do_what_is_due", fail)
    for _ in range(2):
        pruner.hurry()
        pruner.join()
    assert len(passes) == 2


@pytest.mark.slow
@pytest.mark.skipif(connection.vendor != "sqlite", reason="needs SQLite")
def test_the_database_file_stays_the_same_size_with_equal_growth_and_pruning(ann: User) -> None:
    def fill() -> int:
        for _ in range(3):
            run = aged(talked(ann, "long " * 2000), 91)
            RunEvent.objects.bulk_create(
                RunEvent(run=run, seq=seq, type="x", data="y" * 400, created_at=timezone.now())
                for seq in range(1000, 1200)
            )
        prune(replace(NOTHING, threads=90))
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA page_count")
            return int(cursor.fetchone()[0])

    first = fill()
    assert max(fill() for _ in range(3)) <= first * 1.05
    assert not Message.objects.exists()
    assert make_run(ann).number == 1
