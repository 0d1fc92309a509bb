"""The traces of other programs that runs are part of."""

from __future__ import annotations

from django.db import models

from agents.models.run import Run


class RemoteTrace(models.Model):
    """The span that asked for a run, where the request named one and traces are on."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="+")
    traceparent = models.CharField(max_length=55)

    def __str__(self) -> str:
        return f"trace of run {self.run_id}"
