from agents.kernel.features import FeatureConfig


class ProviderKeysConfig(FeatureConfig):
    name = "agents.features.provider_keys"
    label = "vel_provider_keys"
    verbose_name = "Provider keys"
    order = 670
    requires = ("agents",)
    commands = {"providers": "Set, test and remove the keys of model providers."}
