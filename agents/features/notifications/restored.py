"""After a restore: messages on their way are not sent, since they may have been sent before."""

from __future__ import annotations

from agents.features.notifications.models import Notification, NotificationStatus


def give_up_pending() -> None:
    """Give up messages on their way. The admin can send each of them again."""
    Notification.objects.filter(status=NotificationStatus.PENDING).update(
        status=NotificationStatus.GIVEN_UP,
        next_attempt_at=None,
        error="Restored from a backup: it may have been sent before.",
    )


AFTER_RESTORE = [give_up_pending]
