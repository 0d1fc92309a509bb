"""Sums of the use by ended runs, including runs that are deleted."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models.agent import Agent

QUARTER_SECONDS = 900
"""Every time zone in use differs from UTC by a multiple of it: days and months are exact in all of
them.
"""


class UsageTotal(models.Model):
    """Replies of one agent, user and model in one quarter of an hour.

    Each reply is counted once: by its own row if `Run.uncounted_from` includes it, otherwise here.
    """

    start = models.DateTimeField(help_text=_("Of the quarter of an hour, UTC."))
    agent = models.ForeignKey(Agent, on_delete=models.SET_NULL, null=True, related_name="+")
    agent_slug = models.CharField(max_length=100)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    model = models.CharField(max_length=200, blank=True)
    calls = models.PositiveBigIntegerField(default=0)
    tokens = models.PositiveBigIntegerField(default=0)
    microusd = models.PositiveBigIntegerField(
        default=0, help_text=_("Of the replies whose price is known.")
    )
    unpriced = models.PositiveBigIntegerField(
        default=0, help_text=_("Replies whose price is not known.")
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["start", "owner", "agent", "model"], name="usage_total_once"
            ),
        ]
        indexes = [models.Index(fields=["owner", "start"], name="usage_total_of_owner")]

    def __str__(self) -> str:
        return f"{self.agent_slug} {self.model} {self.start:%Y-%m-%d %H:%M}"
