"""Periodic work that any process can do, one process at a time."""

from __future__ import annotations

from django.db import models


class BackgroundJob(models.Model):
    """A periodic job and the time when it is due.

    `due_at` is in seconds since 1970 on the database's clock. The process that takes the job moves
    it forward.
    """

    name = models.CharField(primary_key=True, max_length=40)
    due_at = models.FloatField()

    def __str__(self) -> str:
        return self.name
