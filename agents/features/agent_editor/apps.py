from agents.kernel.features import FeatureConfig


class AgentEditorConfig(FeatureConfig):
    name = "agents.features.agent_editor"
    label = "vel_agent_editor"
    verbose_name = "Agent editor"
    order = 670
    requires = ("agents",)
