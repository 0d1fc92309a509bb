"""Webhooks: signed requests from outside that start runs."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.signals import pre_delete
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH
from agents.models import Run, Trigger, forget_trigger
from agents.secret_text import SecretTextField


class InboundWebhookSigning(models.TextChoices):
    STANDARD = "standard", _("Standard Webhooks")
    GITHUB = "github", _("GitHub (X-Hub-Signature-256)")
    SLACK = "slack", _("Slack (X-Slack-Signature)")
    STRIPE = "stripe", _("Stripe (Stripe-Signature)")


class InboundWebhook(Trigger):
    """An address that starts a run of `agent` in the owner's name, protected by a secret."""

    audit_kind = "hook"

    message = models.TextField(
        help_text=_("Values such as {{ body.issue.title }} are inserted and marked as data.")
    )
    signing = models.CharField(
        max_length=10, choices=InboundWebhookSigning.choices, default=InboundWebhookSigning.STANDARD
    )
    secret = SecretTextField(editable=False)
    former_secret = SecretTextField(blank=True, editable=False)
    former_until = models.DateTimeField(
        null=True, editable=False, help_text=_("The previous secret is accepted until this time.")
    )
    per_minute = models.PositiveIntegerField(
        default=30,
        validators=[MinValueValidator(1), MaxValueValidator(600)],
        help_text=_("The maximum of runs that it starts in a minute."),
    )


pre_delete.connect(forget_trigger, sender=InboundWebhook)


class DeliveryOutcome(models.TextChoices):
    STARTED = "started", _("started")
    REFUSED = "refused", _("not started")


class InboundWebhookDelivery(models.Model):
    """One request with a valid signature. `key` identifies repeated requests."""

    hook = models.ForeignKey(InboundWebhook, on_delete=models.CASCADE, related_name="deliveries")
    key = models.CharField(max_length=200)
    body_sha256 = models.CharField(max_length=64)
    size = models.PositiveIntegerField()
    outcome = models.CharField(max_length=10, choices=DeliveryOutcome.choices)
    reason = models.CharField(max_length=50, blank=True)
    detail = models.TextField(blank=True)
    repeats = models.PositiveIntegerField(default=0, help_text=_("How often it was repeated."))
    run = models.ForeignKey(Run, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "inbound webhook deliveries"
        constraints = [
            models.UniqueConstraint(fields=["hook", "key"], name="delivery_once"),
        ]

    def __str__(self) -> str:
        return f"{self.hook_id}: {self.outcome}"


class InboundWebhookRefusal(models.Model):
    """The number of refused requests: one row for each hook, day and reason.

    `subject` is the hook's id, or empty for all unknown ids: requests with invented ids must not
    create rows.
    """

    subject = models.CharField(max_length=ID_LENGTH, blank=True)
    day = models.DateField()
    reason = models.CharField(max_length=20)
    count = models.PositiveBigIntegerField(default=0)
    last_at = models.DateTimeField()

    class Meta:
        ordering = ["-day", "subject", "reason"]
        constraints = [
            models.UniqueConstraint(fields=["subject", "day", "reason"], name="refusal_of_day"),
        ]

    def __str__(self) -> str:
        return f"{self.subject or 'unknown'} {self.day}: {self.count} {self.reason}"
