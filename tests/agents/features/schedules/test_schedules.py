"""Schedules: which runs start, when, and how often."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.features.budgets.actions import save_budget
from agents.features.budgets.models import Allowance, Budget
from agents.features.notifications.actions import notification_mail, webhook_body
from agents.features.notifications.models import Notification, NotificationTarget
from agents.features.schedules import firing
from agents.features.schedules.firing import fire_due
from agents.features.schedules.models import FiringOutcome, Overlap, Schedule, ScheduleFiring
from agents.models import Message, Run, Thread, ThreadPolicy
from tests.agents.api.rows import make_agent, make_user
from tests.agents.features.schedules.rows import (
    end_runs,
    fire_all,
    last,
    make_due,
    make_schedule,
)

pytestmark = pytest.mark.django_db


@pytest.mark.both_databases
def test_an_installation_without_schedules_pays_one_indexed_look():
    with CaptureQueriesContext(connection) as queries:
        assert not fire_due()

    looks = [each["sql"] for each in queries if "SAVEPOINT" not in each["sql"]]
    assert len(looks) == 1
    with connection.cursor() as cursor:
        prefix = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"{prefix} {looks[0]}")
        assert "schedule_next_at" in str(cursor.fetchall())


def test_a_due_schedule_is_started_once():
    ada = make_user("ada")
    schedule = make_schedule(
        ada,
        message="{{ schedule }} of {{ weekday }}, {{ date }} {{ time }}",
        time_zone="Asia/Tokyo",
    )
    due = datetime(2026, 1, 1, 23, 30, tzinfo=UTC)
    Schedule.objects.filter(pk=schedule.pk).update(
        due_at=due, next_at=due, cron="30 8 * * *", ends_at=due + timedelta(hours=1)
    )

    assert fire_all() == 1

    run = Run.objects.get()
    assert (run.owner, run.source, run.trigger, run.status) == (
        ada,
        "schedule",
        schedule.pk,
        "queued",
    )
    assert Message.objects.get(run=run).text == "Daily of Friday, 2026-01-02 08:30"
    firing = last(schedule)
    assert (firing.due_at, firing.outcome, firing.run, firing.missed) == (due, "started", run, 0)
    schedule.refresh_from_db()
    assert (schedule.due_at, schedule.next_at) == (None, None)  # it has ended


def test_after_downtime_it_is_started_once():
    schedule = make_schedule(make_user("ada"), cron="", interval_seconds=3600)
    due = make_due(schedule, timedelta(hours=50, minutes=30))

    assert fire_all() == 1

    assert Run.objects.count() == 1
    assert (last(schedule).due_at, last(schedule).missed) == (due + timedelta(hours=50), 50)
    schedule.refresh_from_db()
    assert schedule.due_at == due + timedelta(hours=51)


def test_a_time_that_was_done_is_not_done_again():
    """For example after a clock is set back and the schedule is saved again."""
    schedule = make_schedule(make_user("ada"), cron="", interval_seconds=3600)
    due = make_due(schedule)
    fire_all()
    end_runs()
    Schedule.objects.filter(pk=schedule.pk).update(due_at=due, next_at=due)

    fire_all()

    assert Run.objects.count() == 1
    schedule.refresh_from_db()
    assert schedule.due_at == due + timedelta(hours=1)


def test_overlap_skip():
    schedule = make_schedule(make_user("ada"))
    make_due(schedule, timedelta(seconds=5))
    fire_all()
    make_due(schedule)

    fire_all()

    assert Run.objects.count() == 1
    assert (last(schedule).outcome, last(schedule).reason) == ("skipped", "overlap")


def test_overlap_queue_waits_and_starts_one():
    schedule = make_schedule(
        make_user("ada"), overlap=Overlap.QUEUE, cron="", interval_seconds=3600
    )
    make_due(schedule, timedelta(seconds=5))
    fire_all()
    due = make_due(schedule, timedelta(hours=3))

    fire_all()
    schedule.refresh_from_db()
    assert (Run.objects.count(), schedule.due_at) == (1, due)
    assert schedule.next_at is not None
    assert schedule.next_at > timezone.now()
    end_runs()
    Schedule.objects.update(next_at=timezone.now() - timedelta(seconds=1))
    fire_all()

    assert Run.objects.count() == 2
    assert (last(schedule).outcome, last(schedule).missed) == ("started", 3)


def test_one_thread_or_new_ones():
    ada = make_user("ada")
    agent = make_agent()
    one = make_schedule(ada, agent=agent, thread_policy=ThreadPolicy.ONE)
    new = make_schedule(ada, agent=agent)
    for _ in range(2):
        for schedule in (one, new):
            make_due(schedule)
        fire_all()
        end_runs()
        ScheduleFiring.objects.all().delete()

    assert Run.objects.filter(trigger=one.pk).values("thread").distinct().count() == 1
    assert Run.objects.filter(trigger=new.pk).values("thread").distinct().count() == 2
    # A deleted thread is replaced by a new one.
    Thread.objects.filter(runs__trigger=one.pk).delete()
    make_due(one)
    fire_all()
    assert Run.objects.filter(trigger=one.pk).count() == 1


def _lose_agent(schedule: Schedule) -> None:
    schedule.agent.everyone = False
    schedule.agent.save()


def _lose_account(schedule: Schedule) -> None:
    User.objects.filter(pk=schedule.owner_id).update(is_active=False)


def _lose_money(schedule: Schedule) -> None:
    save_budget(Budget(user=schedule.owner, period="day", max_cost=Decimal("1")))
    Allowance.objects.update(used_microusd=1_000_000)


def _lose_agent_for_all(schedule: Schedule) -> None:
    schedule.agent.is_active = False
    schedule.agent.save()


@pytest.mark.parametrize(
    ("lose", "reason"),
    [
        (_lose_agent, "agent_lost"),
        (_lose_agent_for_all, "agent_lost"),
        (_lose_account, "owner_inactive"),
        (_lose_money, "budget_spent"),
    ],
)
def test_the_owners_rights_count_when_it_is_due(lose: Any, reason: str):
    NotificationTarget.objects.create(kind="webhook", address="https://example.org/", secret="s")
    schedule = make_schedule(make_user("ada"))
    lose(schedule)
    for seconds in (10, 5):
        make_due(schedule, timedelta(seconds=seconds))
        fire_all()

    assert not Run.objects.exists()
    firings = list(schedule.firings.all())
    assert {(each.outcome, each.reason) for each in firings} == {("refused", reason)}
    assert len(firings) == 2
    notification = Notification.objects.get()  # the second time sends no notification
    assert notification.subject_id == str(firings[1].pk)
    assert reason.encode() in webhook_body(notification)
    assert b"schedule.not_started" in webhook_body(notification)
    notification.target.address = "ada@example.org"
    assert "was not started" in notification_mail(notification).subject
    schedule.refresh_from_db()
    assert schedule.is_enabled
    assert schedule.due_at is not None


def test_an_internal_error_does_not_block_other_schedules(monkeypatch: pytest.MonkeyPatch):
    ada = make_user("ada")
    agent = make_agent()
    bad, good = make_schedule(ada, agent=agent, name="Bad"), make_schedule(ada, agent=agent)
    make_due(bad, timedelta(seconds=60))
    make_due(good)
    start = firing._start

    def broken(schedule: Schedule, moment: datetime) -> Run:
        run = start(schedule, moment)
        if schedule.pk == bad.pk:
            raise RuntimeError("a fault")
        return run

    monkeypatch.setattr(firing, "_start", broken)
    fire_all()

    assert [run.trigger for run in Run.objects.all()] == [good.pk]
    bad.refresh_from_db()
    assert (bad.is_enabled, last(bad).outcome, last(bad).reason) == (
        False,
        FiringOutcome.FAILED,
        "internal_error",
    )


def test_a_removed_time_zone_pauses_it():
    schedule = make_schedule(make_user("ada"))
    make_due(schedule)
    Schedule.objects.update(time_zone="Asia/Nowhere")

    fire_all()

    assert (last(schedule).outcome, last(schedule).reason) == ("failed", "bad_schedule")
    assert not Schedule.objects.get().is_enabled


def test_past_times_are_limited_in_number(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(firing, "KEPT_FIRINGS", 2)
    monkeypatch.setattr(firing, "_PRUNE_EVERY", 1)
    schedule = make_schedule(make_user("ada"))
    due = []
    for seconds in range(9, 1, -1):
        due.append(make_due(schedule, timedelta(seconds=seconds)))
        fire_all()

    kept = schedule.firings.order_by("due_at").values_list("due_at", flat=True)
    assert list(kept) == due[-2:]
