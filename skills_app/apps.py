from typing import ClassVar

from agents.kernel.features import FeatureConfig


class SkillsConfig(FeatureConfig):
    name = "skills_app"
    verbose_name = "Skills"
    order = 900
    commands: ClassVar = {"skills": "Find, import, review and give out skills."}
    requires = ("agents",)
