from agents.kernel.features import FeatureConfig


class SkillsConfig(FeatureConfig):
    name = "skills_app"
    verbose_name = "Skills"
    order = 900
    requires = ("agents", "memory")
