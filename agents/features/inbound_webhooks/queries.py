"""The webhooks that a person may see."""

from __future__ import annotations

from django.db.models import QuerySet

from agents.features.inbound_webhooks.models import InboundWebhook
from agents.selectors.visible import Person


def inbound_webhooks_for(user: Person) -> QuerySet[InboundWebhook]:
    """Return the webhooks of `user` that start runs. Permissions give no access to others."""
    if not user.is_authenticated:
        return InboundWebhook.objects.none()
    return InboundWebhook.objects.filter(owner=user.pk)
