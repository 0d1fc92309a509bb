"""Special cases at a due time: waiting, giving up, notifications, and stored rows."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import OperationalError
from django.utils import timezone
from pytest_django.fixtures import Settings

from agents.features.notifications.models import Notification, NotificationTarget
from agents.features.schedules import firing
from agents.features.schedules.firing import LOOK_AGAIN, fire_due
from agents.features.schedules.models import FiringOutcome, Overlap, Schedule
from agents.models import AuditEntry, Run, Thread, ThreadPolicy
from agents.states import ACTIVE_RUNS, ENDED_RUNS, RunStatus
from tests.agents.api.rows import make_agent, make_run, make_user
from tests.agents.features.schedules.rows import end_runs, fire_all, last, make_due, make_schedule

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("status", sorted({*ACTIVE_RUNS, *ENDED_RUNS, RunStatus.PENDING}))
def test_which_runs_have_not_ended(status: RunStatus):
    schedule = make_schedule(make_user("ada"))
    make_due(schedule, timedelta(seconds=5))
    fire_all()
    Run.objects.update(status=status)
    make_due(schedule)
    fire_all()

    assert Run.objects.count() == (2 if status in ENDED_RUNS else 1)


@pytest.mark.parametrize("overlap", Overlap.values)
def test_a_schedule_waits_for_the_active_run_of_its_thread(overlap: str):
    """A person may write in the thread, too: this is not a failure and sends no notification."""
    NotificationTarget.objects.create(kind="webhook", address="https://example.org/", secret="s")
    ada, agent = make_user("ada"), make_agent()
    schedule = make_schedule(ada, agent=agent, thread_policy=ThreadPolicy.ONE, overlap=overlap)
    elsewhere = make_schedule(ada, agent=agent, overlap=overlap)
    make_due(schedule, timedelta(seconds=5))
    fire_all()
    end_runs()
    schedule.refresh_from_db()
    make_run(ada, thread=schedule.thread_id)
    for each in (schedule, elsewhere):
        make_due(each)
    before = timezone.now()
    fire_all()

    assert Run.objects.filter(trigger=elsewhere.pk).count() == 1
    assert Run.objects.filter(trigger=schedule.pk).count() == 1
    schedule.refresh_from_db()
    if overlap == Overlap.SKIP:
        assert last(schedule).outcome == "skipped"
    else:
        assert schedule.firings.count() == 1
        assert schedule.next_at is not None
        assert before < schedule.next_at < timezone.now() + 2 * LOOK_AGAIN
    assert not Notification.objects.exists()


def test_a_former_thread_of_a_schedule_does_not_delay_it():
    ada = make_user("ada")
    schedule = make_schedule(ada, thread_policy=ThreadPolicy.ONE)
    make_due(schedule, timedelta(seconds=5))
    fire_all()
    end_runs()
    schedule.refresh_from_db()
    Schedule.objects.update(thread_policy=ThreadPolicy.NEW)
    make_run(ada, thread=schedule.thread_id)
    make_due(schedule)
    fire_all()

    assert last(schedule).outcome == "started"
    assert Thread.objects.count() == 2


def test_the_longest_overdue_schedule_comes_first():
    ada, agent = make_user("ada"), make_agent()
    late, later = (make_schedule(ada, agent=agent, name=name) for name in ("late", "later"))
    make_due(late, timedelta(seconds=5))
    make_due(later, timedelta(seconds=50))
    assert fire_due()

    assert [run.trigger for run in Run.objects.all()] == [later.pk]


def test_the_databases_clock_counts(monkeypatch: pytest.MonkeyPatch):
    """This machine's clock shows tomorrow."""
    schedule = make_schedule(make_user("ada"), cron="", interval_seconds=3600)
    due = make_due(schedule)
    tomorrow = timezone.now() + timedelta(days=1)
    monkeypatch.setattr(firing, "timezone", SimpleNamespace(now=lambda: tomorrow))
    fire_all()

    assert (last(schedule).due_at, last(schedule).missed) == (due, 0)


def test_nothing_is_due_after_the_end():
    """Missed times before the end become one run, at the last of them."""
    schedule = make_schedule(make_user("ada"), cron="", interval_seconds=3600)
    due = make_due(schedule, timedelta(hours=9))
    Schedule.objects.update(ends_at=due + timedelta(hours=2))
    fire_all()

    assert (last(schedule).due_at, last(schedule).missed) == (due + timedelta(hours=2), 2)
    assert Schedule.objects.get().next_at is None


def test_a_failure_after_the_run_was_made_leaves_no_run(monkeypatch: pytest.MonkeyPatch):
    schedule = make_schedule(make_user("ada"), thread_policy=ThreadPolicy.ONE)
    make_due(schedule)

    def broken(*given: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(firing, "set_next", broken)
    fire_all()

    assert not Run.objects.exists()
    assert not Thread.objects.exists()
    assert (schedule.firings.count(), last(schedule).reason) == (1, "internal_error")
    schedule.refresh_from_db()
    assert (schedule.is_enabled, schedule.due_at, schedule.next_at) == (False, None, None)
    paused = AuditEntry.objects.filter(kind="schedule").latest("id")
    assert (paused.action, paused.actor) == ("schedule.changed", "")
    assert "An internal error of Vel" in paused.note


def test_a_database_error_pauses_no_schedule(monkeypatch: pytest.MonkeyPatch):
    schedule = make_schedule(make_user("ada"))
    due = make_due(schedule)

    def locked(*given: object) -> Run:
        raise OperationalError("database is locked")

    with monkeypatch.context() as patch:
        patch.setattr(firing, "_start", locked)
        with pytest.raises(OperationalError):
            fire_due()
    schedule.refresh_from_db()
    assert (schedule.is_enabled, schedule.due_at) == (True, due)
    assert fire_all() == 1
    assert last(schedule).outcome == "started"


def test_only_its_own_past_times_are_pruned(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(firing, "KEPT_FIRINGS", 1)
    monkeypatch.setattr(firing, "_PRUNE_EVERY", 1)
    ada, agent = make_user("ada"), make_agent()
    seldom, often = (make_schedule(ada, agent=agent, name=name) for name in ("seldom", "often"))
    make_due(seldom)
    fire_all()
    for seconds in range(5, 1, -1):
        make_due(often, timedelta(seconds=seconds))
        fire_all()

    assert (seldom.firings.count(), often.firings.count()) == (1, 1)


def test_on_a_full_disk_it_stays_due_and_starts_when_there_is_room(settings: Settings):
    schedule = make_schedule(make_user("ada"))
    due = make_due(schedule)
    usual = settings.VEL
    settings.VEL = {**usual, "RESERVE_BYTES": 10**18}
    fire_all()

    schedule.refresh_from_db()
    assert not Run.objects.exists()
    assert not schedule.firings.exists()
    assert (schedule.is_enabled, schedule.due_at) == (True, due)
    assert timezone.now() < schedule.next_at <= timezone.now() + LOOK_AGAIN

    settings.VEL = usual
    Schedule.objects.update(next_at=due)
    fire_all()
    assert (last(schedule).outcome, last(schedule).due_at) == (FiringOutcome.STARTED, due)
