from agents.kernel.features import FeatureConfig


class InboundWebhooksConfig(FeatureConfig):
    name = "agents.features.inbound_webhooks"
    label = "vel_inbound_webhooks"
    verbose_name = "Inbound webhooks"
    order = 720
    requires = ("agents", "vel_budgets")
