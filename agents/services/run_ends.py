"""The ends of runs that hooks are still to be told of: rows, so that no crash loses one."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from agents.guards.registry import hook_calls
from agents.models import EndedRun, Run

TELLING_SECONDS = 60
"""Whoever begins to tell of an end has so long before another process does it again."""


def note_end(run: Run) -> None:
    """In the transaction that ends `run`. Nothing without a hook that wants to know."""
    if "run_ended" in (hook_calls() or ()):
        EndedRun.objects.update_or_create(run=run, defaults={"due_at": timezone.now()})


def take_ended_run() -> tuple[EndedRun, Run] | None:
    """The longest due end, now this process's to tell; None for none."""
    now = timezone.now()
    row = (
        EndedRun.objects.select_for_update(skip_locked=True, of=("self",))
        .filter(due_at__lte=now)
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
