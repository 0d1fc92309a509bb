"""The ends of runs that hooks are still to be told of: rows, so that no crash loses one."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from django.db import transaction
from django.utils import timezone

from agents.guards.registry import hook_calls
from agents.models import EndedRun, Run
from agents.telemetry.counters import Counters
from agents.telemetry.process import counters
from agents.telemetry.wanted import traces_wanted

TELLING_SECONDS = 60
"""Whoever begins to tell of an end has so long before another process does it again."""


def note_end(run: Run) -> None:
    """In the transaction that ends `run`. Nothing where neither hooks nor traces want to know."""
    if (numbers := counters()) is not None:
        transaction.on_commit(partial(_count_end, numbers, run))
    if somebody_wants_ends():
        EndedRun.objects.update_or_create(run=run, defaults={"due_at": timezone.now()})


def somebody_wants_ends() -> bool:
    return "run_ended" in (hook_calls() or ()) or traces_wanted()


def _count_end(numbers: Counters, run: Run) -> None:
    numbers.add("vel_runs_ended_total", run.status)
    if run.ended_at is not None:
        took = (run.ended_at - run.created_at).total_seconds()
        numbers.observe("vel_run_duration_seconds", run.status, seconds=took)


def take_ended_run() -> tuple[EndedRun, Run] | None:
    """The longest due end, now this process's to tell; None for none."""
    now = timezone.now()
    row = (
        EndedRun.objects.select_for_update(skip_locked=True, of=("self",))
        .filter(due_at__lte=now, run__is_erased=False)  # its rows go, and this one with them
        .order_by("due_at")
        .first()
    )
    if row is None:
        return None
    row.due_at = now + timedelta(seconds=TELLING_SECONDS)
    row.save(update_fields=["due_at"])
    run = Run.objects.select_related("agent_version", "clock").get(pk=row.run_id)
    return (row, run)


def forget_ended_run(row: EndedRun) -> None:
    """The hooks have been told. One that ended once more meanwhile is told of again."""
    EndedRun.objects.filter(pk=row.pk, due_at=row.due_at).delete()
