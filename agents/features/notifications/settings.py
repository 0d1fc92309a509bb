"""Notifications."""

from agents.kernel.settings import Days, FeatureSettings


class NotificationSettings(FeatureSettings):
    """Notifications

    See [notifications](../guides/notifications.md).
    """

    WEBHOOK_PRIVATE_HOSTS: tuple[str, ...] = ()
    """`host` or `host:port` of servers that receive webhooks although they are not public, also
    over http."""
    KEEP_NOTIFICATIONS: Days = 30
    """Notifications that were sent or given up. 0: as long as the run or the target to
    which they belong."""


SETTINGS = (NotificationSettings,)
