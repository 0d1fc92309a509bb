"""The event log: everything that watchers of a run receive, in order and complete."""

from __future__ import annotations

from django.db import models

from agents.models.run import Run


class RunEvent(models.Model):
    """One event. `seq` counts from 1 within the run; `data` is a JSON object as text."""

    pk = models.CompositePrimaryKey("run_id", "seq")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events", db_index=False)
    seq = models.PositiveBigIntegerField()
    type = models.CharField(max_length=40)
    data = models.TextField()
    version = models.PositiveSmallIntegerField(default=1)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["run_id", "seq"]

    def __str__(self) -> str:
        return f"{self.run_id}/{self.seq} {self.type}"
