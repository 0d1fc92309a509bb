"""Rows of skills. Foreign keys name the models of `agents`."""

from skills_app.models.choice import AgentSkill
from skills_app.models.file import SkillBlob, SkillFile
from skills_app.models.pin import RunSkillSet, SkillSet, SkillSetEntry
from skills_app.models.search import SkillIndexEntry
from skills_app.models.skill import Skill, SkillVersion, Trust
from skills_app.models.use import ActiveSkill, SkillUse, UseKind

__all__ = [
    "ActiveSkill",
    "AgentSkill",
    "RunSkillSet",
    "Skill",
    "SkillBlob",
    "SkillFile",
    "SkillIndexEntry",
    "SkillSet",
    "SkillSetEntry",
    "SkillUse",
    "SkillVersion",
    "Trust",
    "UseKind",
]
