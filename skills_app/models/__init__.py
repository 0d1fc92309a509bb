"""The models of skills. Foreign keys name the models of `agents`."""

from skills_app.models.skill import (
    ActiveSkill,
    AgentSkill,
    RunSkillSet,
    Skill,
    SkillBlob,
    SkillFile,
    SkillIndexEntry,
    SkillSet,
    SkillSetEntry,
    SkillUse,
    SkillVersion,
    Trust,
    UseKind,
)

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
