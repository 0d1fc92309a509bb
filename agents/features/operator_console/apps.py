from agents.kernel.features import FeatureConfig


class OperatorConsoleConfig(FeatureConfig):
    name = "agents.features.operator_console"
    label = "vel_operator_console"
    verbose_name = "Operator console"
    order = 660
    requires = ("agents",)
