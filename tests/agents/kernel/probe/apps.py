from agents.kernel.features import FeatureConfig


class ProbeConfig(FeatureConfig):
    name = "tests.agents.kernel.probe"
    label = "probe"
