"""The registry of skills for Python programs, by its public name (docs/guides/skills-search.md)."""

from skills_app.library.registry import SkillRegistry, SkillsRegistry, load_skills_from_directory

__all__ = ["SkillRegistry", "SkillsRegistry", "load_skills_from_directory"]
