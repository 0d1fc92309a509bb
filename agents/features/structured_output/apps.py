from agents.kernel.features import FeatureConfig


class StructuredOutputConfig(FeatureConfig):
    name = "agents.features.structured_output"
    label = "vel_structured_output"
    verbose_name = "Structured output"
    middleware_order = {"structured_output": 300}
    requires = ("agents",)
