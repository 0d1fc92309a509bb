"""Changes of a schedule: which fields they keep, and which they reset."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agents.features.schedules import actions
from agents.features.schedules.actions import (
    delete_schedule,
    enable_schedule,
    save_schedule,
)
from agents.features.schedules.firing import fire_now
from agents.features.schedules.models import Schedule
from agents.models import AuditEntry, Thread, ThreadPolicy
from agents.services.errors import Conflict, InvalidRequest, NotFound
from agents.services.runs.trigger_rights import MESSAGE_CHARACTERS
from tests.agents.api.rows import make_agent, make_user
from tests.agents.features.schedules.rows import end_runs, make_due, make_schedule

pytestmark = pytest.mark.django_db
HOUR = {"cron": "", "interval_seconds": 3600}


def test_an_old_form_does_not_undo_later_changes():
    """A worker has started the thread and set the next time since the form was opened."""
    ada = make_user("ada")
    schedule = make_schedule(ada, thread_policy=ThreadPolicy.ONE, **HOUR)
    opened = Schedule.objects.get()
    due = make_due(schedule, timedelta(minutes=5))
    later = due + timedelta(minutes=6)
    thread = fire_now(schedule.pk, by=ada).thread
    Schedule.objects.update(next_at=later)

    opened.message = "Report more"
    save_schedule(opened, by=ada)

    schedule.refresh_from_db()
    assert (schedule.message, schedule.thread) == ("Report more", thread)
    assert (schedule.due_at, schedule.next_at) == (due, later)


@pytest.mark.parametrize(
    ("change", "is_due"),
    [
        ({"interval_seconds": 7200}, True),
        ({"interval_seconds": None, "cron": "0 9 * * *"}, True),
        ({"time_zone": "Asia/Tokyo"}, True),
        ({"ends_at": timezone.now() + timedelta(days=9)}, True),
        ({"ends_at": timezone.now()}, False),
        ({"is_enabled": False}, False),
    ],
)
def test_other_times_count_from_now(change: dict[str, Any], is_due: bool):
    ada = make_user("ada")
    schedule = make_schedule(ada, **HOUR)
    make_due(schedule)
    for name, value in change.items():
        setattr(schedule, name, value)
    save_schedule(schedule, by=ada)

    schedule.refresh_from_db()
    assert schedule.due_at == schedule.next_at
    assert (schedule.due_at is not None) == is_due
    assert schedule.due_at is None or schedule.due_at > timezone.now()


def test_another_agent_gets_its_own_thread():
    ada = make_user("ada")
    schedule = make_schedule(ada, thread_policy=ThreadPolicy.ONE)
    first = fire_now(schedule.pk, by=ada).thread
    end_runs()
    assert fire_now(schedule.pk, by=ada).thread == first
    schedule.refresh_from_db()
    schedule.agent = make_agent("other")
    save_schedule(schedule, by=ada)

    assert Schedule.objects.get().thread is None
    assert fire_now(schedule.pk, by=ada).thread.agent == schedule.agent


@pytest.mark.parametrize("lost", ["erased", "another's", "of another agent"])
def test_the_one_thread_is_the_owners_or_another_one(lost: str):
    """Erasing keeps the thread's row: a due schedule continues in a new thread."""
    ada, agent = make_user("ada"), make_agent()
    schedule = make_schedule(ada, agent=agent, thread_policy=ThreadPolicy.ONE)
    first = fire_now(schedule.pk, by=ada)
    end_runs()
    if lost == "erased":
        Thread.objects.update(erased_at=timezone.now())
    elif lost == "another's":
        Thread.objects.update(owner=make_user("eve"))
    else:
        Thread.objects.update(agent=make_agent("other"))

    second = fire_now(schedule.pk, by=ada)

    assert second.thread_id != first.thread_id
    assert Schedule.objects.get().thread_id == second.thread_id


def test_new_threads_from_now_on():
    """The schedule then ignores other runs in its old thread."""
    ada = make_user("ada")
    schedule = make_schedule(ada, thread_policy=ThreadPolicy.ONE)
    fire_now(schedule.pk, by=ada)
    schedule.refresh_from_db()
    schedule.thread_policy = ThreadPolicy.NEW
    save_schedule(schedule, by=ada)

    fire_now(schedule.pk, by=ada)
    assert Thread.objects.count() == 2


def test_a_change_without_effect_is_not_in_the_audit_log():
    ada = make_user("ada")
    schedule = make_schedule(ada, **HOUR)
    due = make_due(schedule)
    save_schedule(Schedule.objects.get(), by=ada)
    enable_schedule(schedule.pk, True, by=ada)

    assert AuditEntry.objects.filter(kind="schedule").count() == 1
    assert Schedule.objects.get().due_at == due


def test_a_resumed_schedule_counts_from_now():
    ada = make_user("ada")
    schedule = make_schedule(ada, **HOUR)
    enable_schedule(schedule.pk, False, by=ada)
    Schedule.objects.update(updated_at=timezone.now() - timedelta(days=3))

    due = enable_schedule(schedule.pk, True, by=ada).due_at

    assert due is not None
    assert timedelta(seconds=3590) < due - timezone.now() <= timedelta(seconds=3600)


def test_a_schedule_with_an_invalid_message_is_not_resumed():
    ada = make_user("ada")
    schedule = make_schedule(ada)
    Schedule.objects.update(is_enabled=False, message="{{ gone }}")
    with pytest.raises(InvalidRequest, match="gone"):
        enable_schedule(schedule.pk, True, by=ada)
    with pytest.raises(InvalidRequest, match="gone"):
        fire_now(schedule.pk, by=ada)


def test_how_many_one_person_may_have(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(actions, "MOST_SCHEDULES", 2)
    ada, agent = make_user("ada"), make_agent()
    make_schedule(make_user("bob"), agent=agent)
    for _ in range(2):
        schedule = make_schedule(ada, agent=agent)
    with pytest.raises(Conflict, match="2 schedules"):
        make_schedule(ada, agent=agent)
    schedule.name = "Still to be changed"
    save_schedule(schedule, by=ada)


def test_how_long_a_message_may_be():
    ada, agent = make_user("ada"), make_agent()
    make_schedule(ada, agent=agent, message="x" * MESSAGE_CHARACTERS)
    with pytest.raises(InvalidRequest, match="At most"):
        make_schedule(ada, agent=agent, message="x" * (MESSAGE_CHARACTERS + 1))


def test_a_time_at_the_very_end_is_due():
    schedule = make_schedule(make_user("ada"))
    due = schedule.due_at
    assert due is not None
    for ends_at, expected in ((due, due), (due - timedelta(seconds=1), None)):
        schedule.ends_at = ends_at
        assert save_schedule(schedule, by=schedule.owner).due_at == expected


def test_a_deleted_schedule_is_not_found():
    ada = make_user("ada")
    schedule = make_schedule(ada)
    read = Schedule.objects.get()
    delete_schedule(schedule.pk, by=ada)
    for act in (
        lambda: save_schedule(read, by=ada),
        lambda: enable_schedule(read.pk, False, by=ada),
        lambda: delete_schedule(read.pk, by=ada),
        lambda: fire_now(read.pk, by=ada),
    ):
        with pytest.raises(NotFound, match="no such schedule"):
            act()
    assert not Schedule.objects.exists()
