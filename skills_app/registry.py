"""The public name of the skill registry for Python programs (docs/guides/skills-search.md)."""

from skills_app.library.registry import SkillRegistry, SkillsRegistry, load_skills_from_directory

__all__ = ["SkillRegistry", "SkillsRegistry", "load_skills_from_directory"]
