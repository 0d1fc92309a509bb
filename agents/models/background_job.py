"""Work that some process does now and then, one at a time."""

from __future__ import annotations

from django.db import models


class BackgroundJob(models.Model):
    """`due_at` is in seconds since 1970 by the database's clock; who takes it moves it on."""

    name = models.CharField(primary_key=True, max_length=40)
    due_at = models.FloatField()

    def __str__(self) -> str:
        return self.name
