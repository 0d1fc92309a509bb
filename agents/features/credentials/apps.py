from agents.kernel.features import FeatureConfig


class CredentialsConfig(FeatureConfig):
    name = "agents.features.credentials"
    label = "vel_credentials"
    verbose_name = "Credentials"
    requires = ("agents",)
