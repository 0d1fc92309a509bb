"""Owners and permissions of schedules, and refused values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone

from agents.features.budgets.actions import save_budget
from agents.features.budgets.models import Allowance, Budget
from agents.features.budgets.scope import window_name
from agents.features.inbound_webhooks.actions import delete_inbound_webhook, enable_inbound_webhook
from agents.features.inbound_webhooks.models import InboundWebhook
from agents.features.schedules.actions import delete_schedule, enable_schedule, save_schedule
from agents.features.schedules.firing import fire_now
from agents.features.schedules.models import Schedule
from agents.models import AuditEntry, Thread
from agents.services.errors import InvalidRequest, NotAllowed, NotFound
from tests.agents.api.rows import make_agent, make_user
from tests.agents.features.inbound_webhooks.rows import make_inbound_webhook
from tests.agents.features.schedules.rows import (
    end_runs,
    fire_all,
    last,
    make_due,
    make_operator,
    make_schedule,
)

pytestmark = pytest.mark.django_db


def test_schedules_are_paused_and_resumed_by_permitted_people():
    ada = make_user("ada")
    schedule = make_schedule(ada)
    make_due(schedule, timedelta(days=3))

    enable_schedule(schedule.pk, False, by=ada)
    assert fire_all() == 0
    enable_schedule(schedule.pk, True, by=ada)
    assert fire_all() == 0
    schedule.refresh_from_db()
    assert schedule.due_at is not None
    assert schedule.due_at > timezone.now()
    actions = list(AuditEntry.objects.filter(kind="schedule").values_list("action", flat=True))
    assert sorted(actions) == ["schedule.changed", "schedule.changed", "schedule.created"]


def test_by_hand():
    ada = make_user("ada")
    schedule = make_schedule(ada)
    run = fire_now(schedule.pk, by=ada)

    assert (run.trigger, last(schedule).reason) == (schedule.pk, "by_hand")
    assert Schedule.objects.get().due_at == schedule.due_at
    with pytest.raises(NotAllowed):
        fire_now(schedule.pk, by=make_operator())


def test_only_the_owner_changes_a_schedule():
    ada, eve = make_user("ada"), make_user("eve")
    operator = make_operator()
    schedule = make_schedule(ada)
    schedule.message = "Send me the books"
    for other in (eve, operator):
        with pytest.raises(NotAllowed):
            save_schedule(schedule, by=other)
        with pytest.raises(NotAllowed):
            make_schedule_for(ada, other)
    with pytest.raises(NotAllowed):
        enable_schedule(schedule.pk, False, by=eve)
    with pytest.raises(NotAllowed):
        delete_schedule(schedule.pk, by=eve)
    schedule.owner = eve
    with pytest.raises(InvalidRequest, match="The owner of a schedule cannot change"):
        save_schedule(schedule, by=eve)
    assert Schedule.objects.get().message == "Report"

    enable_schedule(schedule.pk, False, by=operator)
    delete_schedule(schedule.pk, by=operator)
    assert not Schedule.objects.exists()


def make_schedule_for(owner: User, by: User) -> None:
    agent = make_agent(f"of-{by.username}")
    values = {"name": "N", "message": "M", "cron": "0 9 * * *"}
    save_schedule(Schedule(owner=owner, agent=agent, **values), by=by)


def test_an_agent_of_others_is_not_found():
    agent = make_agent(everyone=False)
    with pytest.raises(NotFound):
        make_schedule(make_user("ada"), agent=agent)
    agent.groups.add(Group.objects.create(name="g"))
    bob = make_user("bob")
    bob.groups.add(Group.objects.get())
    assert make_schedule(bob, agent=agent).due_at is not None


@pytest.mark.parametrize(
    "fields",
    [
        {"message": " "},
        {"message": "{{ body }}"},
        {"message": "a\x00"},
        {"name": ""},
        {"name": "two\nlines"},
        {"cron": "0 0 30 2 *"},
        {"cron": "0 0 * * *", "interval_seconds": 60},
        {"cron": ""},
        {"time_zone": "Nowhere"},
        {"overlap": "both"},
        {"thread_policy": "x"},
    ],
)
def test_invalid_schedules_are_refused(fields: dict[str, Any]):
    with pytest.raises(InvalidRequest):
        make_schedule(make_user("ada"), **fields)


def test_the_very_agent_counts_and_not_any():
    """Access to one agent does not permit a schedule for another."""
    ada, eve = make_user("ada"), make_user("eve")
    mine = make_agent("mine", owner=ada, everyone=False)
    private = make_agent("private", owner=eve, everyone=False)
    with pytest.raises(NotFound):
        make_schedule(ada, agent=private)

    schedule = make_schedule(ada, agent=mine)
    Schedule.objects.update(agent=private)
    make_due(schedule)
    assert fire_all() == 1
    assert last(schedule).reason == "agent_lost"
    with pytest.raises((NotAllowed, NotFound)):
        fire_now(schedule.pk, by=ada)


def test_the_day_is_the_one_of_its_thread():
    """A thread's own time zone sets the day of its runs, so the budget check uses it, too."""
    ada = make_user("ada")
    schedule = make_schedule(ada, thread_policy="one")
    fire_now(schedule.pk, by=ada)
    end_runs()
    zone = "Pacific/Kiritimati" if timezone.now().hour >= 11 else "Etc/GMT+12"
    Thread.objects.update(time_zone=zone)
    save_budget(Budget(user=ada, period="day", max_tokens=9))
    Allowance.objects.update(window=window_name("day", zone), used_tokens=9)
    make_due(schedule)
    fire_all()

    assert last(schedule).reason == "budget_spent"


def test_the_permission_to_stop_schedules_stops_no_webhooks():
    ada, operator = make_user("ada"), make_operator()
    hook, _ = make_inbound_webhook(ada)
    for stop in (
        lambda: enable_inbound_webhook(hook.pk, False, by=operator),
        lambda: delete_inbound_webhook(hook.pk, by=operator),
    ):
        with pytest.raises(NotAllowed, match="change_inboundwebhook"):
            stop()
    assert InboundWebhook.objects.get().is_enabled


def test_a_superuser_mends_anothers_schedule():
    schedule = make_schedule(make_user("ada"))
    schedule.message = "Report again"
    save_schedule(schedule, by=make_user("root", superuser=True))
    assert Schedule.objects.get().message == "Report again"


@pytest.mark.parametrize("year", [1, 1999, 9001, 9999])
def test_an_end_that_no_page_could_show(year: int):
    """Extreme times overflow in the reader's time zone and would break the page for everyone."""
    with pytest.raises(InvalidRequest, match="ends_at"):
        make_schedule(make_user("ada"), ends_at=datetime(year, 12, 31, 23, 59, tzinfo=UTC))
