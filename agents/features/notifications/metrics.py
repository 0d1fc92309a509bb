"""Metrics of notifications."""

from __future__ import annotations

from collections.abc import Iterator

from agents.features.notifications.models import Notification, NotificationStatus
from agents.telemetry.counters import Gauge


def _gauges() -> Iterator[Gauge]:
    pending = Notification.objects.filter(status=NotificationStatus.PENDING)
    yield Gauge("vel_notifications_pending", "Notifications on their way.", {(): pending.count()})
    failing = pending.exclude(error="")
    yield Gauge(
        "vel_notifications_failing", "Those of them that have failed before.", {(): failing.count()}
    )


GAUGES = [_gauges]
