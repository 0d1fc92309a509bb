"""Find the processes that would still write to the database."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import F

from agents.doors.cli.terminal import one_line
from agents.features.operations.database_move.errors import MoveRefused
from agents.models import Machine, RunClock, ServerProcess
from agents.models.database_clock import DatabaseNow
from agents.selectors.metrics import ALIVE_SECONDS
from agents.states import RunStatus

SHOWN = 10
"""The limit of names in a refusal."""


def refuse_active(using: str) -> None:
    """Raise `MoveRefused` if a process or a host has reported, or a run has a driver."""
    found = [*_processes(using), *_hosts(using), *_leases(using)]
    if found:
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise MoveRefused(
            f"Vel still uses the database: {'; '.join(found[:SHOWN])}{more}. Stop Vel on all "
            f"hosts. After a crash, wait {ALIVE_SECONDS:.0f} seconds. Then try again."
        )


def _processes(using: str) -> Iterator[str]:
    rows = ServerProcess.objects.using(using).exclude(pk=ServerProcess.RETIRED)
    for row in rows.annotate(ago=DatabaseNow() - F("seen_at")).filter(ago__lte=ALIVE_SECONDS):
        ago = max(0.0, row.ago)
        yield f"the {row.kind} process {row.pid} on {one_line(row.host)} reported {ago:.0f} s ago"


def _hosts(using: str) -> Iterator[str]:
    rows = Machine.objects.using(using).filter(dead_at=None)
    for row in rows.annotate(ago=DatabaseNow() - F("seen_at")).filter(ago__lte=ALIVE_SECONDS):
        yield f"the host {one_line(row.name)} reported {max(0.0, row.ago):.0f} s ago"


def _leases(using: str) -> Iterator[str]:
    rows = RunClock.objects.using(using).filter(run__status=RunStatus.RUNNING)
    rows = rows.annotate(left=F("lease_until") - DatabaseNow())
    for row in rows.filter(left__gt=0).order_by("run_id"):
        yield (
            f"{one_line(row.lease_holder)} executes the run {row.run_id} "
            f"(its lease ends in {row.left:.0f} s)"
        )
