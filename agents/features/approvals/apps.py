from agents.kernel.features import FeatureConfig


class ApprovalsConfig(FeatureConfig):
    name = "agents.features.approvals"
    label = "vel_approvals"
    verbose_name = "Approvals"
    requires = ("agents",)
