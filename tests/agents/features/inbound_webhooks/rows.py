"""Webhooks, and requests with the signatures of their senders."""

from __future__ import annotations

import json
import time
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from agents.features.inbound_webhooks.actions import DayBudget, create_inbound_webhook
from agents.features.inbound_webhooks.models import InboundWebhook
from agents.features.inbound_webhooks.signatures import sign_standard
from tests.agents.api.rows import make_agent

TEMPLATE = "Look at {{ body.issue.title }}"
BODY = json.dumps({"issue": {"title": "Rain"}}).encode()


def make_inbound_webhook(
    owner: User, *, budget: DayBudget | None = None, given: str = "", **fields: Any
) -> tuple[InboundWebhook, str]:
    """Create a hook; return it and its secret."""
    agent = fields.pop("agent", None) or make_agent()
    values = {"name": "Issues", "message": TEMPLATE, **fields}
    hook = InboundWebhook(owner=owner, agent=agent, **values)
    return hook, create_inbound_webhook(hook, by=owner, budget=budget, secret=given)


def signed(
    secret: str, body: bytes = BODY, *, message_id: str = "msg_1", at: int | None = None
) -> dict[str, str]:
    """Return signed headers of Standard Webhooks."""
    moment = int(time.time()) if at is None else at
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(moment),
        "webhook-signature": sign_standard(secret, message_id, moment, body),
    }


def send(
    hook_id: str,
    headers: dict[str, str],
    body: bytes = BODY,
    *,
    content_type: str = "application/json",
) -> HttpResponse:
    """Send a request without cookies, with CSRF checks as on a real server."""
    client = Client(enforce_csrf_checks=True)
    return client.post(f"/hooks/{hook_id}", body, content_type=content_type, headers=headers)
