"""Rows of skills. `skills_app` never imports `agents`: foreign keys name its models."""

from skills_app.models.skill import Skill, SkillVersion, Trust

__all__ = ["Skill", "SkillVersion", "Trust"]
