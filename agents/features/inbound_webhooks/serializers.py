"""Serializers of webhooks that start runs. Only the answer that creates a secret has it."""

from __future__ import annotations

from decimal import Decimal

from rest_framework import serializers

from agents.doors.rest.serializers import AgentField, Flag, StrictSerializer, Text
from agents.doors.rest.triggers import (
    message_field,
    name_field,
    stamp,
    thread_policy_field,
)
from agents.features.inbound_webhooks.actions import (
    LONGEST_OVERLAP,
    MOST_PER_MINUTE,
    USUAL_OVERLAP,
    budget_of,
)
from agents.features.inbound_webhooks.models import (
    DeliveryOutcome,
    InboundWebhook,
    InboundWebhookDelivery,
    InboundWebhookSigning,
)
from agents.features.inbound_webhooks.signatures import LONGEST_SECRET
from agents.models import ThreadPolicy

MOST_TOKENS = 10**15
_USD = {"max_digits": 12, "decimal_places": 6, "min_value": Decimal("0")}


class NewHookBody(StrictSerializer):
    """`secret` is given by the sender; without it, one is generated."""

    name = name_field()
    agent = AgentField()
    message = message_field()
    signing = serializers.ChoiceField(
        choices=InboundWebhookSigning.values, default=InboundWebhookSigning.STANDARD
    )
    secret = Text(max_length=LONGEST_SECRET, required=False)
    thread_policy = thread_policy_field(default=ThreadPolicy.NEW)
    per_minute = serializers.IntegerField(min_value=1, max_value=MOST_PER_MINUTE, default=30)
    max_tokens_a_day = serializers.IntegerField(
        min_value=0, max_value=MOST_TOKENS, required=False, allow_null=True
    )
    max_cost_a_day = serializers.DecimalField(required=False, allow_null=True, **_USD)  # type: ignore[arg-type]
    enabled = Flag(default=True)


class HookBody(StrictSerializer):
    """Absent fields do not change."""

    name = name_field(required=False)
    agent = AgentField(required=False)
    message = message_field(required=False)
    thread_policy = thread_policy_field(required=False)
    per_minute = serializers.IntegerField(min_value=1, max_value=MOST_PER_MINUTE, required=False)
    max_tokens_a_day = serializers.IntegerField(
        min_value=0, max_value=MOST_TOKENS, required=False, allow_null=True
    )
    max_cost_a_day = serializers.DecimalField(required=False, allow_null=True, **_USD)  # type: ignore[arg-type]
    enabled = Flag(required=False)


class RotateBody(StrictSerializer):
    """`overlap`: seconds for which the former secret stays valid."""

    secret = Text(max_length=LONGEST_SECRET, required=False)
    overlap = serializers.IntegerField(
        min_value=0, max_value=LONGEST_OVERLAP, default=USUAL_OVERLAP
    )


class HookShape(serializers.Serializer[InboundWebhook]):
    """`url` is the path for the sender's POST requests."""

    id = serializers.CharField()
    name = serializers.CharField()
    owner = serializers.CharField(source="owner.get_username")
    agent = serializers.CharField(source="agent.slug")
    message = serializers.CharField()
    signing = serializers.ChoiceField(choices=InboundWebhookSigning.values)
    url = serializers.SerializerMethodField()
    thread_policy = thread_policy_field()
    thread = serializers.CharField(source="thread_id", allow_null=True)
    per_minute = serializers.IntegerField()
    max_tokens_a_day = serializers.SerializerMethodField()
    max_cost_a_day = serializers.SerializerMethodField()
    enabled = serializers.BooleanField(source="is_enabled")
    former_until = stamp(allow_null=True)
    created_at = stamp()

    def get_url(self, hook: InboundWebhook) -> str:
        return f"/hooks/{hook.pk}"

    def get_max_tokens_a_day(self, hook: InboundWebhook) -> int | None:
        budget = budget_of(hook)
        return budget.max_tokens if budget else None

    def get_max_cost_a_day(self, hook: InboundWebhook) -> str | None:
        budget = budget_of(hook)
        return str(budget.max_cost) if budget and budget.max_cost is not None else None


class NewSecretShape(serializers.Serializer[object]):
    """`secret` is the key for signing requests. It is shown only once.

    It is empty in the response to a repeated request with an idempotency key.
    """

    hook = HookShape()
    secret = serializers.CharField()


class DeliveryShape(serializers.Serializer[InboundWebhookDelivery]):
    """`repeats`: how often the same request came again."""

    id = serializers.IntegerField()
    key = serializers.CharField()
    size = serializers.IntegerField()
    outcome = serializers.ChoiceField(choices=DeliveryOutcome.values)
    reason = serializers.CharField()
    detail = serializers.CharField()
    repeats = serializers.IntegerField()
    run = serializers.CharField(source="run_id", allow_null=True)
    created_at = stamp()
