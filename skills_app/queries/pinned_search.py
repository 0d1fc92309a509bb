"""Search among a run's skills."""

from __future__ import annotations

from collections.abc import Collection

from skills_app.library.pinned import PinnedSkill
from skills_app.library.search.triggers import Message, matching
from skills_app.models import Skill
from skills_app.queries.index import SHORTLIST, search_skills
from skills_app.queries.stored import rank_pinned
from skills_app.settings import SkillSettings

FITS = 0.3
"""From this score on, a skill is suggested to the model."""
_LOOKED_AT = 4_000
"""Characters of a message: its subject is usually at its start."""
_RANKED = 60
"""With more skills, only triggers make suggestions: the first ranking in a process reads all
skills.
"""


def find_pinned(query: str, skills: Collection[PinnedSkill]) -> list[tuple[PinnedSkill, float]]:
    """Return (skill, score from 0 to 1), the best first; of many only those with a common word."""
    if len(skills) <= SHORTLIST:
        return rank_pinned(query, skills)
    by_version = {skill.version_id: skill for skill in skills}
    ranked = search_skills(query, Skill.objects.filter(current_id__in=list(by_version)))
    return [
        (by_version[found.version_id], found.score)
        for found in ranked
        if found.version_id in by_version
    ]


def suggested(message: str, skills: Collection[PinnedSkill]) -> list[str]:
    """Return names of the few skills that a message calls for: by a trigger, or by rank."""
    text = message[:_LOOKED_AT]
    read = Message.of(text)
    names = [skill.name for skill in skills if matching(skill.head.triggers, read) is not None]
    if len(skills) <= _RANKED:
        names += [skill.name for skill, score in find_pinned(text, skills) if score >= FITS]
    return list(dict.fromkeys(names))[: SkillSettings.now().SUGGESTIONS]
