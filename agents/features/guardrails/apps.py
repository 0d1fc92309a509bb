from agents.kernel.features import FeatureConfig


class GuardrailsConfig(FeatureConfig):
    name = "agents.features.guardrails"
    label = "vel_guardrails"
    verbose_name = "Guardrails"
    middleware_order = {
        "lifecycle": 50,
        "lifecycle.on_park": 900,
        "guardrails": 100,
        "stuck.before_model": 100,
        "stuck.after_model": 200,
        "model_retries": 900,
        "tool_retries": 900,
    }
    requires = ("agents",)
