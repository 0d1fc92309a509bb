"""Runs whose end the operator's hooks have not been told of."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from agents.models.run import Run


class EndedRun(models.Model):
    """Written with the end of a run where a hook wants to know of it, deleted when it does.

    `due_at`: from then on a worker may tell it; one that begins to sets it to when others may. If
    a Python program has hooks of its own, it is an hour after the end: only the program tells
    it before.
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="+")
    due_at = models.DateTimeField(default=timezone.now, db_index=True)

    def __str__(self) -> str:
        return f"end of run {self.run_id}"
