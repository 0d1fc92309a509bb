"""The ends of runs that hooks are still to be told of: rows, so that no crash loses one."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.utils import timezone

from agents.guards.registry import hook_calls
from agents.models import EndedRun, Run
from agents.services.run_toolkits import toolkit_of
from agents.telemetry.counters import Counters
from agents.telemetry.process import counters
from agents.telemetry.wanted import traces_wanted
from agents.toolkits import all_bound

TELLING_SECONDS = 60
"""Whoever begins to tell of an end has so long before another process does it again."""


PROGRAM_SECONDS = 3600
"""A Python program has so long after the end of its run to tell its own hooks."""

LOOKED_AT = 100
"""Due ends that one look takes into account."""


def note_end(run: Run) -> None:
    """In the transaction that ends `run`. Nothing where neither hooks nor traces want to know."""
    if (numbers := counters()) is not None:
        transaction.on_commit(partial(_count_end, numbers, run))
    if somebody_wants_ends() or "." in run.spec.get("toolkit", ""):
        EndedRun.objects.update_or_create(run=run, defaults={"due_at": timezone.now()})


def somebody_wants_ends() -> bool:
    return (
        "run_ended" in (hook_calls() or ())
        or any("run_ended" in toolkit.hooks for toolkit in all_bound())
        or traces_wanted()
    )


def _count_end(numbers: Counters, run: Run) -> None:
    numbers.add("vel_runs_ended_total", run.status)
    if run.ended_at is not None:
        took = (run.ended_at - run.created_at).total_seconds()
        numbers.observe("vel_run_duration_seconds", run.status, seconds=took)


def take_ended_run() -> tuple[EndedRun, Run] | None:
    """The longest due end, now this process's to tell; None for none.

    The end of a run with hooks of a Python program is left to that program for `PROGRAM_SECONDS`.
    """
    now = timezone.now()
    due = EndedRun.objects.filter(due_at__lte=now, run__is_erased=False)  # its rows go, and this
    runs = Run.objects.select_related("agent_version", "clock", "thread")
    for key in due.order_by("due_at").values_list("pk", flat=True)[:LOOKED_AT]:
        row = (
            EndedRun.objects.select_for_update(skip_locked=True, of=("self",))
            .filter(pk=key, due_at__lte=now)
            .first()
        )
        run = runs.get(pk=row.run_id) if row is not None else None
        if row is None or run is None or _is_for_a_program(run, now):
            continue
        row.due_at = now + timedelta(seconds=TELLING_SECONDS)
        row.save(update_fields=["due_at"])
        return (row, run)
    return None


def _is_for_a_program(run: Run, now: datetime) -> bool:
    """Whether a Python program that this process is not may still tell its hooks of the end."""
    fingerprint = run.spec.get("toolkit", "")
    if "." not in fingerprint or toolkit_of(run, fingerprint) is not None:
        return False
    return run.ended_at is not None and now - run.ended_at < timedelta(seconds=PROGRAM_SECONDS)


def forget_ended_run(row: EndedRun) -> None:
    """The hooks have been told. One that ended once more meanwhile is told of again."""
    EndedRun.objects.filter(pk=row.pk, due_at=row.due_at).delete()
