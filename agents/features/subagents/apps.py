from agents.kernel.features import FeatureConfig


class SubagentsConfig(FeatureConfig):
    name = "agents.features.subagents"
    label = "vel_subagents"
    verbose_name = "Subagents"
    order = 1100
    requires = ("agents",)
