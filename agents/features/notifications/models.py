"""Notification targets and messages to them."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH, new_id
from agents.models import Agent, Run


class TargetKind(models.TextChoices):
    WEBHOOK = "webhook", _("webhook")
    EMAIL = "email", _("e-mail")


class NotificationTarget(models.Model):
    """A webhook or an e-mail address that gets messages about requests and other notices."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    kind = models.CharField(max_length=10, choices=TargetKind.choices)
    address = models.CharField(max_length=500, help_text=_("The URL, or the e-mail address."))
    secret = models.CharField(
        max_length=200,
        blank=True,
        help_text=_("The key for signatures of webhooks. Empty: a key is generated."),
    )
    agent = models.ForeignKey(
        Agent,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="notification_targets",
        help_text=_("Only messages about this agent. Empty: all agents."),
    )
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["created_at"]

    def __str__(self) -> str:
        return f"{self.kind} {self.address}"


class NotificationStatus(models.TextChoices):
    PENDING = "pending", _("pending")
    DELIVERED = "delivered", _("delivered")
    GIVEN_UP = "given_up", _("given up")
    OBSOLETE = "obsolete", _("not needed any more")


class Notification(models.Model):
    """One message to one target: written with its notice, sent by a worker, retried on failure."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    target = models.ForeignKey(
        NotificationTarget, on_delete=models.CASCADE, related_name="notifications"
    )
    type = models.CharField(
        max_length=50, help_text=_("The type of the notice, for example approval.requested.")
    )
    subject_id = models.CharField(
        max_length=64, help_text=_("The id of the request or other row of the notice.")
    )
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    status = models.CharField(
        max_length=10, choices=NotificationStatus.choices, default=NotificationStatus.PENDING
    )
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    delivered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["target", "type", "subject_id"], name="notification_once"
            ),
        ]
        indexes = [
            models.Index(
                fields=["next_attempt_at"],
                condition=models.Q(status=NotificationStatus.PENDING),
                name="notification_due",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.target_id}: {self.status}"
