from agents.kernel.features import FeatureConfig


class GlossaryConfig(FeatureConfig):
    name = "vel_glossary"
    label = "vel_glossary"
    verbose_name = "Glossary"
    order = 5000
    requires = ("agents",)
    middleware_order = {"glossary": 5000}
