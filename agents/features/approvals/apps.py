from agents.kernel.features import FeatureConfig


class ApprovalsConfig(FeatureConfig):
    name = "agents.features.approvals"
    label = "vel_approvals"
    verbose_name = "Approvals"
    requires = ("agents",)
    commands = {
        "approvals": "List, show and decide what waits for a person.",
        "grants": "List and revoke standing permissions.",
        "policy": "Show an agent's policy, and try another on its past calls.",
    }
