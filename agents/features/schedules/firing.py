"""Start due schedules: one transaction reads the clock and writes the run's rows.

If a process is killed in the transaction, another process finds the time still due. A lock on the
schedule's row and the unique pair of schedule and time prevent two starts.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from agents.features.schedules.actions import check_schedule, locked_schedule, set_next
from agents.features.schedules.models import FiringOutcome, Overlap, Schedule, ScheduleFiring
from agents.features.schedules.notices import announce_firing
from agents.features.schedules.times import latest_until, times_of
from agents.models import Run, ThreadPolicy
from agents.models.database_clock import DatabaseNow
from agents.selectors.visible import threads_for
from agents.services.audit import record
from agents.services.errors import NoSpace, ServiceError
from agents.services.runs.start import RunRequest, create_run
from agents.services.runs.trigger_rights import check_can_start, check_may_define
from agents.services.runs.trigger_template import clock_values, filled
from agents.states import ACTIVE_RUNS, RunStatus

logger = logging.getLogger(__name__)

LOOK_AGAIN = timedelta(seconds=5)
"""Pause before the next check whether an earlier run has ended or the disk has room."""
KEPT_FIRINGS = 200
"""Limit for one schedule."""
_PRUNE_EVERY = 50
_NOT_STARTED = (FiringOutcome.REFUSED, FiringOutcome.FAILED)


@transaction.atomic
def fire_due() -> bool:
    """Start the longest due schedule, by the database's clock. Return False if none is due.

    A schedule that cannot start is recorded, paused or postponed.

    It makes one indexed query if none is due.
    """
    due = Schedule.objects.filter(next_at__lte=Now()).order_by("next_at")
    found = due.annotate(clock=DatabaseNow()).values_list("pk", "clock").first()
    if found is None:
        return False
    schedule_id, clock = found
    rows = due.select_for_update(no_key=True, of=("self",)).select_related("owner", "agent")
    schedule = rows.filter(pk=schedule_id).first()
    if schedule is None:
        return True  # another process was faster; others may be due
    now = datetime.fromtimestamp(clock, UTC)
    try:
        with transaction.atomic():
            _fire(schedule, now)
    except NoSpace:
        Schedule.objects.filter(pk=schedule.pk).update(next_at=now + LOOK_AGAIN)
    except (OperationalError, InterfaceError):
        raise  # a problem of the database: the schedule stays due
    except Exception as error:
        # If it stayed due, it would block all other schedules.
        logger.exception("a schedule failed", extra={"schedule": schedule.pk})
        _give_up(
            schedule, now, "internal_error", f"An internal error of Vel: {type(error).__name__}."
        )
    return True


@transaction.atomic
def fire_now(schedule_id: str, *, by: AbstractBaseUser) -> Run:
    """Start a schedule once, by hand. Its next due time does not change.

    Raises `NotFound`, `NotAllowed`, `InvalidRequest` if the schedule has become invalid, and the
    errors of `create_run` and `check_can_start`.
    """
    schedule = locked_schedule(schedule_id)
    check_may_define(schedule, by)
    check_schedule(schedule)
    now = timezone.now()
    run = _start(schedule, now)
    ScheduleFiring.objects.create(
        schedule=schedule, due_at=now, outcome=FiringOutcome.STARTED, reason="by_hand", run=run
    )
    record("schedule.run", schedule, name=schedule.name, by=by, changes={"run": (None, run.pk)})
    return run


def _fire(schedule: Schedule, now: datetime) -> None:
    assert schedule.due_at is not None
    try:
        times = check_schedule(schedule)
    except ServiceError as error:  # the machine's time zone data can change
        _give_up(schedule, now, "bad_schedule", error.message)
        return
    until = min(now, schedule.ends_at) if schedule.ends_at else now
    due, missed = latest_until(times, schedule.due_at, until)
    is_busy = _is_busy(schedule)
    if is_busy and schedule.overlap == Overlap.QUEUE:
        schedule.next_at = now + LOOK_AGAIN
        schedule.save(update_fields=["next_at"])
        return
    if not ScheduleFiring.objects.filter(schedule=schedule, due_at=due).exists():
        if is_busy:
            text = "The run before has not ended."
            _record(schedule, due, FiringOutcome.SKIPPED, "overlap", text, missed=missed)
        else:
            _try_to_start(schedule, due, missed)
    set_next(schedule, times, due)
    schedule.save(update_fields=["due_at", "next_at", "thread"])


def _try_to_start(schedule: Schedule, due: datetime, missed: int) -> None:
    try:
        run = _start(schedule, due)
    except NoSpace:
        raise  # the schedule stays due, and starts when there is room
    except ServiceError as error:
        _record(schedule, due, FiringOutcome.REFUSED, error.code, error.message, missed=missed)
    else:
        _record(schedule, due, FiringOutcome.STARTED, run=run, missed=missed)


def _start(schedule: Schedule, moment: datetime) -> Run:
    check_can_start(schedule)
    zone = times_of(schedule.cron, schedule.interval_seconds, schedule.time_zone).zone
    values = {**clock_values(moment.astimezone(zone)), "schedule": schedule.name}
    goes_on = schedule.thread_policy == ThreadPolicy.ONE
    # If the thread was erased, the schedule gets a new one.
    mine = threads_for(schedule.owner).filter(pk=schedule.thread_id, agent=schedule.agent_id)
    request = RunRequest(
        agent=schedule.agent.slug,
        message=filled(schedule.message, values),
        thread=schedule.thread_id if goes_on and mine.exists() else None,
        source="schedule",
        trigger=schedule.pk,
    )
    run = create_run(request, owner=schedule.owner).run
    if goes_on and schedule.thread_id != run.thread_id:
        schedule.thread_id = run.thread_id
        Schedule.objects.filter(pk=schedule.pk).update(thread=run.thread_id)
    return run


def _is_busy(schedule: Schedule) -> bool:
    """Return whether a run of the schedule, or of its single thread, is unfinished."""
    earlier = Q(trigger=schedule.pk)
    if schedule.thread_policy == ThreadPolicy.ONE:
        earlier |= Q(thread=schedule.thread_id)
    unfinished = [*ACTIVE_RUNS, RunStatus.PENDING]
    return Run.objects.filter(earlier, parent=None, status__in=unfinished).exists()


def _give_up(schedule: Schedule, now: datetime, reason: str, text: str) -> None:
    """Pause the schedule, since each start would fail."""
    schedule.is_enabled, schedule.due_at, schedule.next_at = False, None, None
    schedule.save(update_fields=["is_enabled", "due_at", "next_at"])
    text = f"{text} The schedule is paused: look at it and enable it again."
    _record(schedule, now, FiringOutcome.FAILED, reason, text)
    changes = {"is_enabled": (True, False)}
    record("schedule.changed", schedule, name=schedule.name, changes=changes, note=text)


def _record(
    schedule: Schedule,
    due: datetime,
    outcome: FiringOutcome,
    reason: str = "",
    detail: str = "",
    *,
    run: Run | None = None,
    missed: int = 0,
) -> None:
    before = schedule.firings.order_by("-id").first()
    firing = ScheduleFiring.objects.create(
        schedule=schedule,
        due_at=due,
        outcome=outcome,
        reason=reason[:50],
        detail=detail,
        run=run,
        missed=missed,
    )
    # Announce a repeated reason only once.
    if outcome in _NOT_STARTED and (before is None or before.reason != firing.reason):
        announce_firing(firing)
    if firing.pk % _PRUNE_EVERY == 0:
        newest_first = schedule.firings.order_by("-id").values_list("pk", flat=True)
        oldest_kept = newest_first[KEPT_FIRINGS - 1 : KEPT_FIRINGS].first()
        schedule.firings.filter(pk__lt=oldest_kept or 0).delete()
