from agents.kernel.features import FeatureConfig


class NotificationsConfig(FeatureConfig):
    name = "agents.features.notifications"
    label = "vel_notifications"
    verbose_name = "Notifications"
    requires = ("agents",)
    commands = {"notifications": "Tell people by webhook or e-mail that something waits."}
