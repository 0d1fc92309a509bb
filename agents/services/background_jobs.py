"""Work that some process does now and then: who finds it due takes it from the others."""

from __future__ import annotations

from django.db import transaction

from agents.models import BackgroundJob
from agents.models.database_clock import DatabaseNow


@transaction.atomic
def take_background_job(name: str, every: float) -> bool:
    """Whether it is due and now the caller's; it is due again in `every` seconds.

    One that was never done is due at once. A process that dies over it leaves it for the next
    time: only for work that may be done later, and twice.
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
