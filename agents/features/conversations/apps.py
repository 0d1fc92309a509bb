from agents.kernel.features import FeatureConfig


class ConversationsConfig(FeatureConfig):
    name = "agents.features.conversations"
    label = "vel_conversations"
    verbose_name = "Conversations"
    order = 640
    requires = ("agents",)
