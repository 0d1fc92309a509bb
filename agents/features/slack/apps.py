from agents.kernel.features import FeatureConfig


class SlackConfig(FeatureConfig):
    name = "agents.features.slack"
    label = "vel_slack"
    verbose_name = "Slack"
    order = 500
    requires = ("agents", "vel_credentials")
