"""Ends of runs before the notification of features: rows, so that a crash loses none.

A feature lists instances of `EndListener` in its `run_ends.END_LISTENERS`. A process that drives
runs notifies them within about a second, for ends by any process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime, timedelta
from functools import lru_cache, partial

from django.core.signals import setting_changed
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agents.kernel.features import collect
from agents.kernel.row_hooks import RowHooks
from agents.models import EndedRun, Run
from agents.telemetry.counters import Counters
from agents.telemetry.process import counters, traces_wanted
from agents.toolkits import ENDS_MARK, threads_with

TELLING_SECONDS = 60
"""The time that a process has to notify of an end before another process does it again."""


PROGRAM_SECONDS = 3600
"""The time after the end of its run that a Python program has to notify its own code."""

THREADS_OF_ONE_QUERY = 500
"""SQLite limits the parameters of a query."""


class EndListener(ABC):
    """A listener of ends: each is reported at least once, and again if a process dies."""

    @abstractmethod
    def wants_ends(self) -> bool:
        """Return whether rows about ends must be written. It is called for each end."""

    @abstractmethod
    async def run_ended(self, run: Run) -> None:
        """Handle the end of a run. After an exception, all listeners are notified again later."""


@lru_cache(maxsize=1)
def end_listeners() -> tuple[EndListener, ...]:
    """Return the listeners of all features."""
    return tuple(listener for _, listener in collect("run_ends", "END_LISTENERS"))


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        end_listeners.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.services.runs.ends")


def note_end(run: Run) -> None:
    """Store the end of `run`, in the transaction that ends it, if a listener needs it."""
    if (numbers := counters()) is not None:
        transaction.on_commit(partial(_count_end, numbers, run))
    of_program = ENDS_MARK in run.spec.get("toolkit", "")
    if of_program or somebody_wants_ends():
        # Other processes do not even read the ends that are left to a program, so any number of
        # them delays no other end.
        left = timedelta(seconds=PROGRAM_SECONDS if of_program else 0)
        EndedRun.objects.update_or_create(run=run, defaults={"due_at": timezone.now() + left})


def somebody_wants_ends() -> bool:
    return traces_wanted() or any(listener.wants_ends() for listener in end_listeners())


def _count_end(numbers: Counters, run: Run) -> None:
    numbers.add("vel_runs_ended_total", run.status)
    if run.ended_at is not None:
        took = (run.ended_at - run.created_at).total_seconds()
        numbers.observe("vel_run_duration_seconds", run.status, seconds=took)


def take_ended_run() -> tuple[EndedRun, Run] | None:
    """Return the earliest due end, reserved for this process, or None.

    The end of a run with code of a Python program is left to that program for `PROGRAM_SECONDS`.
    The program takes its own ends first.
    """
    now = timezone.now()
    row = _first_of_program(now) or _first(Q(due_at__lte=now))
    if row is None:
        return None
    row.due_at = now + timedelta(seconds=TELLING_SECONDS)
    row.save(update_fields=["due_at"])
    return (row, row.run)


def _first_of_program(now: datetime) -> EndedRun | None:
    """Return the first end that is left to this process, which has the program of the run."""
    # An end that is due earlier is due for all processes, or a process has reserved it.
    left = Q(due_at__gt=now + timedelta(seconds=TELLING_SECONDS))
    threads = threads_with(lambda toolkit: toolkit.wants_ends)
    for start in range(0, len(threads), THREADS_OF_ONE_QUERY):
        some = threads[start : start + THREADS_OF_ONE_QUERY]
        mine = Q(run__thread__in=some) | Q(run__thread__root__in=some)
        if (row := _first(left & mine)) is not None:
            return row
    return None


def _first(which: Q) -> EndedRun | None:
    """Lock and return the earliest of these ends that no other process has locked."""
    found = EndedRun.objects.filter(which, run__is_erased=False)  # hidden: to be deleted
    with_run = found.select_related("run__agent_version", "run__clock", "run__thread")
    locked = with_run.select_for_update(skip_locked=True, of=("self",))
    return locked.order_by("due_at").first()


def forget_ended_run(row: EndedRun) -> None:
    """Delete the row after all notifications. A run that has ended again keeps its row."""
    EndedRun.objects.filter(pk=row.pk, due_at=row.due_at).delete()


class EndRows(RowHooks):
    """Each end of a run is stored as a row for its listeners."""

    order = 400

    def ended(self, run: Run, *, wake: bool) -> None:
        note_end(run)
