"""Which of a run's skills fit a text."""

from __future__ import annotations

from collections.abc import Collection

from skills_app.library.pinned import PinnedSkill
from skills_app.library.search.triggers import Message, matching
from skills_app.models import Skill
from skills_app.queries.index import SHORTLIST, search_skills
from skills_app.queries.stored import rank_pinned
from skills_app.settings import SkillSettings

FITS = 0.3
"""From this score on a skill is named to the model unasked."""
_LOOKED_AT = 4_000
"""Characters of a message: what it is about stands at its beginning."""
_RANKED = 60
"""Of more skills only triggers speak unasked: the first ranking in a process reads them all."""


def find_pinned(query: str, skills: Collection[PinnedSkill]) -> list[tuple[PinnedSkill, float]]:
    """(skill, score from 0 to 1), the best first; of many only those that have a word of it."""
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
    """Names of the few skills that a message asks for: by a trigger of theirs, or by rank."""
    text = message[:_LOOKED_AT]
    read = Message.of(text)
    names = [skill.name for skill in skills if matching(skill.head.triggers, read) is not None]
    if len(skills) <= _RANKED:
        names += [skill.name for skill, score in find_pinned(text, skills) if score >= FITS]
    return list(dict.fromkeys(names))[: SkillSettings.now().SUGGESTIONS]
