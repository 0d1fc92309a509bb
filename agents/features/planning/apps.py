from agents.kernel.features import FeatureConfig


class PlanningConfig(FeatureConfig):
    name = "agents.features.planning"
    label = "vel_planning"
    verbose_name = "Planning"
    order = 100
    requires = ("agents",)
