"""Search the skills that a person may see, by tag, trust or words."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import F, Q, QuerySet

from skills_app.library.normalise import normalise_name
from skills_app.library.scopes import BUILT_IN, LIBRARY
from skills_app.models import Skill
from skills_app.queries.index import search_skills as ranked_versions

LEAST_SCORE = 0.05
"""A skill with a lower score is not a match."""
NAMED_SCORE = 0.6
"""The score of a skill whose name contains the query."""
_SCOPES = {"built-in": BUILT_IN, "library": LIBRARY}


@dataclass(frozen=True, slots=True)
class SkillFilter:
    """The conditions of a search. Empty ones match all skills.

    `scope` is `built-in` or `library`.
    """

    scope: str = ""
    trust: str = ""
    tag: str = ""


@dataclass(frozen=True, slots=True)
class FoundSkill:
    """A skill and its score, from 0 to 1."""

    skill: Skill
    score: float


def filter_skills(skills: QuerySet[Skill], terms: SkillFilter) -> QuerySet[Skill]:
    if terms.scope:
        skills = skills.filter(scope=_SCOPES[terms.scope])
    if terms.trust:
        latest = Q(current=None, versions__number=F("version"), versions__trust=terms.trust)
        ids = skills.filter(Q(current__trust=terms.trust) | latest).order_by().values("pk")
        skills = skills.filter(pk__in=ids)
    if terms.tag:
        # Compare tags here: not every database can search JSON lists, and there are few tags.
        rows = skills.exclude(current=None).values_list("pk", "current__head")
        wanted = terms.tag.casefold()
        skills = skills.filter(
            pk__in=[
                pk
                for pk, head in rows.order_by()
                if wanted in [tag.casefold() for tag in head.get("tags", ())]
            ]
        )
    return skills


def search_skills(skills: QuerySet[Skill], query: str, *, limit: int) -> list[FoundSkill]:
    """Return at most `limit` skills that match `query`, best first.

    A skill with this name has the score 1, and one whose name contains the query at least
    `NAMED_SCORE`. A skill without an accepted version is only found by its name.
    """
    scores = {match.skill_id: match.score for match in ranked_versions(query, skills)}
    called = normalise_name(query)
    named = skills.filter(name__contains=called) if called else skills.none()
    for pk, name in named.values_list("pk", "name"):
        scores[pk] = 1.0 if name == called else max(scores.get(pk, 0.0), NAMED_SCORE)
    best = sorted(scores, key=lambda pk: (-scores[pk], pk))[:limit]
    rows = skills.select_related("current").in_bulk(best)
    return [FoundSkill(rows[pk], scores[pk]) for pk in best if scores[pk] >= LEAST_SCORE]
