"""Schedules, and their due times."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import Permission, User
from django.utils import timezone

from agents.features.schedules.actions import save_schedule
from agents.features.schedules.firing import fire_due
from agents.features.schedules.models import Schedule, ScheduleFiring
from agents.models import Run
from agents.states import RunStatus
from tests.agents.api.rows import make_agent, make_user


def make_schedule(owner: User, **fields: Any) -> Schedule:
    agent = fields.pop("agent", None) or make_agent()
    values = {"name": "Daily", "message": "Report", "cron": "0 9 * * *", **fields}
    return save_schedule(Schedule(owner=owner, agent=agent, **values), by=owner)


def make_operator() -> User:
    olga = make_user("olga")
    # django-q2 has its own schedules.
    right = Permission.objects.get(
        codename="change_schedule", content_type__app_label="vel_schedules"
    )
    olga.user_permissions.add(right)
    return olga


def make_due(schedule: Schedule, ago: timedelta = timedelta(seconds=1)) -> datetime:
    """Move the due time of the schedule back by this time."""
    due = timezone.now().replace(microsecond=0) - ago
    Schedule.objects.filter(pk=schedule.pk).update(due_at=due, next_at=due)
    return due


def fire_all() -> int:
    count = 0
    while fire_due():
        count += 1
        assert count < 20
    return count


def end_runs() -> None:
    Run.objects.update(status=RunStatus.COMPLETED)


def last(schedule: Schedule) -> ScheduleFiring:
    found = schedule.firings.first()
    assert found is not None
    return found
