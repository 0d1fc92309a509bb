"""Notifications on the status page of operators."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from agents.features.notifications.models import Notification, NotificationStatus
from agents.ids import first_id_at
from agents.selectors.status import StatusSection
from agents.telemetry.spans import short

LOOKED_BACK = timedelta(days=7)


def trouble() -> StatusSection:
    """Return the number of failing messages, of those given up in a week, and the last error."""
    failing = Notification.objects.filter(status=NotificationStatus.PENDING).exclude(error="")
    given_up = Notification.objects.filter(
        pk__gte=first_id_at(timezone.now() - LOOKED_BACK), status=NotificationStatus.GIVEN_UP
    )
    latest = (failing | given_up).order_by("-pk").values_list("error", flat=True).first()
    return StatusSection(
        "Notifications",
        (
            ("Failing, tried again", str(failing.count())),
            ("Given up in a week", str(given_up.count())),
        ),
        f"Last failure: {short(latest)}" if latest else "",
    )


SECTIONS = [trouble]
