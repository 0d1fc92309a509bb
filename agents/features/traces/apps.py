from agents.kernel.features import FeatureConfig


class TracesConfig(FeatureConfig):
    name = "agents.features.traces"
    label = "vel_traces"
    verbose_name = "Traces"
    order = 650
    requires = ("agents",)
