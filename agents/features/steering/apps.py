from agents.kernel.features import FeatureConfig


class SteeringConfig(FeatureConfig):
    name = "agents.features.steering"
    label = "vel_steering"
    verbose_name = "Steering"
    order = 655
    middleware_order = {"steering": 20}
    requires = ("agents",)
