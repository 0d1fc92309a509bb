"""Runs whose end features have not been notified of."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from agents.models.run import Run


class EndedRun(models.Model):
    """Written with the end of a run if a feature wants to know of it, and deleted afterwards.

    `due_at`: when a worker may notify of it; a worker that starts sets it to when others may. If a
    Python program has code of its own for ends, it is an hour after the end: before, only the
    program notifies of it.
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="+")
    due_at = models.DateTimeField(default=timezone.now, db_index=True)

    def __str__(self) -> str:
        return f"end of run {self.run_id}"
