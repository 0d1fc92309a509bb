"""Who hears that something waits, and each message that is on its way."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH, new_id
from agents.models.agent import Agent
from agents.models.approval import ApprovalRequest


class TargetKind(models.TextChoices):
    WEBHOOK = "webhook", _("webhook")
    EMAIL = "email", _("e-mail")


class NotificationTarget(models.Model):
    """A webhook or an e-mail address that hears of new requests for approval."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    kind = models.CharField(max_length=10, choices=TargetKind.choices)
    address = models.CharField(max_length=500, help_text=_("The URL, or the e-mail address."))
    secret = models.CharField(
        max_length=200,
        blank=True,
        help_text=_("Webhooks are signed with it. Empty: one is made."),
    )
    agent = models.ForeignKey(
        Agent,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="notification_targets",
        help_text=_("Only of this agent's requests. Empty: of all agents."),
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
    """One message to one target: written with the request, sent by a worker, tried again."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    target = models.ForeignKey(
        NotificationTarget, on_delete=models.CASCADE, related_name="notifications"
    )
    request = models.ForeignKey(
        ApprovalRequest,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="notifications",
    )
    firing = models.ForeignKey(
        "agents.ScheduleFiring",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="notifications",
        help_text=_("The scheduled run that was not started, where it tells of one."),
    )
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
            models.UniqueConstraint(fields=["target", "request"], name="notification_once"),
            models.CheckConstraint(
                condition=models.Q(request__isnull=False, firing__isnull=True)
                | models.Q(request__isnull=True, firing__isnull=False),
                name="notification_of_one",
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
