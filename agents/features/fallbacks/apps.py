from agents.kernel.features import FeatureConfig


class FallbacksConfig(FeatureConfig):
    name = "agents.features.fallbacks"
    label = "vel_fallbacks"
    verbose_name = "Fallbacks"
    middleware_order = {"fallbacks": 300}
    requires = ("agents",)
