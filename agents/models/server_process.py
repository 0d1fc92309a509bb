"""The processes of this installation, each with the last state that it reported."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class ProcessKind(models.TextChoices):
    WORKER = "worker", _("worker")
    WEB = "web", _("web")


class ServerProcess(models.Model):
    """One process. It updates its row every few seconds, and removes the row when it ends.

    `seen_at` is in seconds since 1970 on the database's clock. `counters` is the JSON of
    `agents.telemetry.counters.Values` since the process started, or "" if it does not count. The
    row named `RETIRED` holds the sums of processes that are gone.
    """

    RETIRED = "retired"

    name = models.CharField(primary_key=True, max_length=100)
    kind = models.CharField(max_length=10, choices=ProcessKind.choices)
    host = models.CharField(max_length=255, blank=True)
    pid = models.PositiveIntegerField(default=0)
    version = models.CharField(max_length=50, blank=True)
    started_at = models.FloatField(default=0)
    seen_at = models.FloatField(default=0)
    driven = models.PositiveIntegerField(
        default=0, help_text=_("Runs that it drives at the moment.")
    )
    capacity = models.PositiveIntegerField(default=0)
    streams = models.PositiveIntegerField(default=0, help_text=_("Open event streams."))
    limits = models.TextField(
        blank=True, help_text=_("The mechanisms that enforce its sandboxes' limits, as JSON.")
    )
    counters = models.TextField(blank=True)

    class Meta:
        ordering = ["kind", "host", "pid"]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"
