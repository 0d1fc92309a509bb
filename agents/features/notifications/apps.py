from agents.kernel.features import FeatureConfig


class NotificationsConfig(FeatureConfig):
    name = "agents.features.notifications"
    label = "vel_notifications"
    verbose_name = "Notifications"
    requires = ("agents",)
    commands = {"notifications": "Notify people of pending requests by webhook or e-mail."}
