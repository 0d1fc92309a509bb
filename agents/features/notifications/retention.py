"""How long notifications are kept."""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet

from agents.features.notifications.models import Notification, NotificationStatus
from agents.features.notifications.settings import NotificationSettings
from agents.kernel.retention import OldRows


def _days() -> int:
    return NotificationSettings.now().KEEP_NOTIFICATIONS


def _rows(before: datetime) -> QuerySet[Notification]:
    done = Notification.objects.exclude(status=NotificationStatus.PENDING)
    return done.filter(created_at__lt=before)


OLD_ROWS = [OldRows("notification", _days, _rows)]
