from agents.kernel.features import FeatureConfig


class OperationsConfig(FeatureConfig):
    name = "agents.features.operations"
    label = "vel_operations"
    verbose_name = "Operations"
    order = 1000
    requires = ("agents",)
    commands = {
        "service": "Run Vel as a service of systemd.",
    }
