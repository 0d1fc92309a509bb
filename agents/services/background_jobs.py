"""Periodic work: the process that finds a job due reserves it."""

from __future__ import annotations

from django.db import transaction

from agents.models import BackgroundJob
from agents.models.database_clock import DatabaseNow


@transaction.atomic
def take_background_job(name: str, every: float) -> bool:
    """Return whether the job is due, and reserve it: it is due again in `every` seconds.

    A job that never ran is due immediately. If a process dies during a job, it runs again at the
    next due time. Use this only for work that can run late, or twice.
    """
    due = BackgroundJob.objects.filter(name=name, due_at__lte=DatabaseNow())
    if due.update(due_at=DatabaseNow() + every):
        return True
    if BackgroundJob.objects.filter(name=name).exists():
        return False
    created = BackgroundJob.objects.bulk_create(
        [BackgroundJob(name=name, due_at=0)], ignore_conflicts=True
    )
    return bool(created) and bool(due.update(due_at=DatabaseNow() + every))


def hurry_background_job(name: str, within: float) -> None:
    """Let the job be due in at most `within` seconds, for example after it has failed."""
    soon = DatabaseNow() + within
    BackgroundJob.objects.filter(name=name, due_at__gt=soon).update(due_at=soon)
