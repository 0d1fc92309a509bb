"""Requests and targets for the tests of notifications."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.test import override_settings

from agents.features.notifications.actions import save_target
from agents.features.notifications.models import Notification, NotificationTarget
from agents.models import ApprovalRequest
from tests.agents.engine import by_hand
from tests.support.receivers import InboundWebhook


def asked(count: int = 1, **run: Any) -> list[ApprovalRequest]:
    """Return the requests of a run that has just been parked."""
    _, made = by_hand.new_run(**run)
    return by_hand.parked(made, count)


def webhook(url: str, **fields: Any) -> NotificationTarget:
    target = NotificationTarget(kind="webhook", address=url, **fields)
    save_target(target)
    return target


def email(address: str = "ada@example.org", **fields: Any) -> NotificationTarget:
    target = NotificationTarget(kind="email", address=address, **fields)
    save_target(target)
    return target


@contextmanager
def private(*hosts: str, **more: Any) -> Iterator[None]:
    """Allow private addresses for these hosts, as an operator does."""
    with override_settings(VEL={**settings.VEL, "WEBHOOK_PRIVATE_HOSTS": hosts, **more}):
        yield


@contextmanager
def hooked(hook: InboundWebhook, **fields: Any) -> Iterator[NotificationTarget]:
    """Create a target for `hook` and allow its private address."""
    with private(hook.host):
        yield webhook(hook.url, **fields)


def make_due(**which: Any) -> None:
    """End the pause before a retry, or the lease of a dead sender."""
    for row in Notification.objects.filter(status="pending", **which):
        row.next_attempt_at -= timedelta(days=1)
        row.save(update_fields=["next_attempt_at"])
