"""Create and change schedules."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.utils import timezone

from agents.features.schedules.models import Overlap, Schedule
from agents.features.schedules.times import BadTimes, Times, next_after, times_of
from agents.models import ThreadPolicy
from agents.services.audit import changes_between, fields_of, record
from agents.services.errors import Conflict, InvalidRequest, NotFound
from agents.services.runs.trigger_rights import (
    check_may_define,
    check_may_stop,
    check_message,
    check_trigger,
)
from agents.services.runs.trigger_template import BadTemplate, check_template

MOST_SCHEDULES = 100
"""Limit for one person."""

_FIRST_YEAR, _LAST_YEAR = 2000, 9000
"""Pages cannot show times at the ends of the calendar in every time zone."""

FIELDS = (
    "name",
    "agent_id",
    "message",
    "cron",
    "interval_seconds",
    "time_zone",
    "thread_policy",
    "overlap",
    "ends_at",
    "is_enabled",
)
_OF_TIMES = ("cron", "interval_seconds", "time_zone", "ends_at", "is_enabled")


@transaction.atomic
def save_schedule(schedule: Schedule, *, by: AbstractBaseUser) -> Schedule:
    """Store a new or changed schedule of its owner.

    If its times have changed, a due time of the old version is dropped.

    Raises `InvalidRequest`, `NotAllowed`, `NotFound` (the agent; the schedule, if it was deleted)
    and `Conflict` (too many schedules).
    """
    check_may_define(schedule, by)
    check_trigger(schedule)
    times = check_schedule(schedule)
    stored = None
    if schedule._state.adding:
        get_user_model().objects.select_for_update().get(pk=schedule.owner_id)
        if Schedule.objects.filter(owner=schedule.owner_id).count() >= MOST_SCHEDULES:
            raise Conflict(f"The limit of {MOST_SCHEDULES} schedules is reached. Delete one first.")
    else:
        stored = locked_schedule(schedule.pk)
        if stored.owner_id != schedule.owner_id:
            raise InvalidRequest("The owner of a schedule cannot change. Create another schedule.")
        schedule.thread_id, schedule.due_at = stored.thread_id, stored.due_at
        schedule.next_at = stored.next_at
        if stored.agent_id != schedule.agent_id:
            schedule.thread_id = None
    before = fields_of(stored, *FIELDS) if stored else None
    if stored is None or any(getattr(stored, n) != getattr(schedule, n) for n in _OF_TIMES):
        set_next(schedule, times, timezone.now())
    schedule.save()
    changes = changes_between(before, fields_of(schedule, *FIELDS))
    if changes:
        action = "schedule.created" if stored is None else "schedule.changed"
        record(action, schedule, name=schedule.name, by=by, changes=changes)
    return schedule


@transaction.atomic
def enable_schedule(schedule_id: str, enabled: bool, *, by: AbstractBaseUser) -> Schedule:
    """Pause a schedule, or continue it from now on, without the times missed during the pause.

    Raises `NotFound`, `NotAllowed`, and `InvalidRequest` if its times have become invalid.
    """
    schedule = locked_schedule(schedule_id)
    check_may_stop(schedule, by)
    if schedule.is_enabled == enabled:
        return schedule
    schedule.is_enabled = enabled
    if enabled:
        set_next(schedule, check_schedule(schedule), timezone.now())
    else:
        schedule.due_at = schedule.next_at = None
    schedule.save(update_fields=["is_enabled", "due_at", "next_at", "updated_at"])
    changes = {"is_enabled": (not enabled, enabled)}
    record("schedule.changed", schedule, name=schedule.name, by=by, changes=changes)
    return schedule


@transaction.atomic
def delete_schedule(schedule_id: str, *, by: AbstractBaseUser) -> None:
    """Delete a schedule and the record of its times; its runs stay.

    Raises `NotFound`, `NotAllowed`.
    """
    schedule = locked_schedule(schedule_id)
    check_may_stop(schedule, by)
    changes = {name: (value, None) for name, value in fields_of(schedule, *FIELDS).items()}
    record("schedule.deleted", schedule, name=schedule.name, by=by, changes=changes)
    schedule.delete()


def check_schedule(schedule: Schedule) -> Times:
    """Check the fields, and return the times. Raises `InvalidRequest` with the field's name."""
    check_message(schedule.message)
    if schedule.thread_policy not in ThreadPolicy.values or schedule.overlap not in Overlap.values:
        raise InvalidRequest("Choose one of the offered values.")
    if schedule.ends_at is not None and not _FIRST_YEAR <= schedule.ends_at.year <= _LAST_YEAR:
        raise InvalidRequest(f"ends_at: A time from {_FIRST_YEAR} to {_LAST_YEAR}, or none.")
    try:
        check_template(schedule.message, "schedule")
        return times_of(schedule.cron, schedule.interval_seconds, schedule.time_zone)
    except (BadTemplate, BadTimes) as error:
        raise InvalidRequest(str(error)) from None


def set_next(schedule: Schedule, times: Times, after: datetime) -> None:
    """Set the first due time later than `after`, or None if the schedule is paused or has ended."""
    due = next_after(times, after) if schedule.is_enabled else None
    if due is not None and schedule.ends_at is not None and due > schedule.ends_at:
        due = None
    schedule.due_at = schedule.next_at = due


def locked_schedule(schedule_id: str) -> Schedule:
    """Lock and return a schedule. Raises `NotFound`."""
    rows = Schedule.objects.select_for_update(no_key=True, of=("self",))
    found = rows.select_related("owner", "agent").filter(pk=schedule_id).first()
    if found is None:
        raise NotFound("There is no such schedule.")
    return found
