"""Requests to send waiting messages now."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models import Run


class SteeringRequest(models.Model):
    """A request of the owner: messages that wait join the run, or the run stops for one."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="+")
    by = models.CharField(max_length=200, help_text=_("The name of the user."))
    until = models.PositiveIntegerField(
        null=True,
        help_text=_(
            "The number of the last waiting run whose message joins the run. Null: the run stops "
            "after its running call."
        ),
    )

    def __str__(self) -> str:
        return f"steering of run {self.run_id}"
