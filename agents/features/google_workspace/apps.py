from agents.kernel.features import FeatureConfig


class GoogleWorkspaceConfig(FeatureConfig):
    name = "agents.features.google_workspace"
    label = "vel_google_workspace"
    verbose_name = "Google Workspace"
    order = 510
    requires = ("agents", "vel_credentials")
