from agents.kernel.features import FeatureConfig


class ConversationExportConfig(FeatureConfig):
    name = "agents.features.conversation_export"
    label = "vel_conversation_export"
    verbose_name = "Conversation export"
    order = 645
    requires = ("agents",)
    commands = {"threads": "Export conversations."}
