from agents.kernel.features import FeatureConfig


class CustomMiddlewareConfig(FeatureConfig):
    name = "agents.features.custom_middleware"
    label = "vel_custom_middleware"
    verbose_name = "Custom middleware"
    middleware_order = {"custom": 10, "custom.before_agent": 200, "custom.wrap_tool_call": 500}
    requires = ("agents",)
