"""Requests to stop for a waiting message."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models import Run


class SteeringRequest(models.Model):
    """A request of the owner: the run stops after its running call."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="+")
    by = models.CharField(max_length=200, help_text=_("The name of the user."))

    def __str__(self) -> str:
        return f"steering of run {self.run_id}"
