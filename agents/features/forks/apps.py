from agents.kernel.features import FeatureConfig


class ForksConfig(FeatureConfig):
    name = "agents.features.forks"
    label = "vel_forks"
    verbose_name = "Forks"
    order = 600
    requires = ("agents",)
