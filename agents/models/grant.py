"""Grants: standing permissions for calls that then need no approval."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH, new_id
from agents.models.agent import Agent
from agents.models.thread import Thread


class ApprovalGrant(models.Model):
    """A permission for matching calls of one agent: scoped, expiring, counted, revocable.

    A grant turns "ask" into "allow". It never overrides a denial and does not apply to proposals.
    `condition` is `agents.spec.CallCondition`; empty means every input of the tool.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="grants")
    tool = models.CharField(max_length=200)
    condition = models.JSONField(default=dict, blank=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text=_("Whose runs it covers. Empty: the runs of everybody."),
    )
    thread = models.ForeignKey(
        Thread,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="grants",
        help_text=_("The one conversation that it covers. Empty: all."),
    )
    reason = models.TextField(blank=True)
    max_uses = models.PositiveIntegerField()
    uses = models.PositiveIntegerField(default=0)
    last_used_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField()
    request = models.ForeignKey(
        "agents.ApprovalRequest",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="grants",
        help_text=_("The request with whose approval it was given."),
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["agent", "tool"], name="grant_lookup")]

    def __str__(self) -> str:
        return f"grant {self.pk}"
