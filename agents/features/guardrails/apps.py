from agents.kernel.features import FeatureConfig


class GuardrailsConfig(FeatureConfig):
    name = "agents.features.guardrails"
    label = "vel_guardrails"
    verbose_name = "Guardrails"
    middleware_order = {
        "model_retries": 900,
        "tool_retries": 900,
    }
    requires = ("agents",)
