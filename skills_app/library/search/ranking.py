"""Rank skills for a request.

The score of a skill depends only on the request and the skill, so scores of different libraries are
comparable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from skills_app.library.search.document import Analysed, SkillDocument, analyse
from skills_app.library.search.query import Query, nearness, read_query
from skills_app.library.search.triggers import matching

NAME_BONUS = 0.25
"""Added if the query has all words of the skill's name."""
PAIR_BONUS = 0.08
"""Added for each pair of words that are neighbours in the query and in the skill's description."""
NAMED, NAMED_PLAINLY = 0.5, 0.2
"""Added if the query has the whole name: of several words or next to "skill"; of one word."""
TRIGGERED = 0.25
"""Added if the query has one of the skill's triggers."""
NEAR, NEAR_SHARE = 0.4, 0.6
"""A skill whose direction is nearer to the query's than NEAR gains up to NEAR_SHARE …"""
NEAR_WEIGHT = 0.2
"""… and this weight counts as found, so that skills without a common word have a rank."""
LITTLE = 0.4
"""The weight of found words from which a score is reliable although much is missing."""
SPREAD = 1.1
"""A factor that puts the scores of right skills above 0.2 and those of chance matches below."""

SHOWN, FIRST = 0.1, 3
"""A list of results has the FIRST results, and further ones with a score from SHOWN."""


@dataclass(frozen=True, slots=True)
class Match:
    """A skill and its `score` for a query, from 0 to 1.

    With 1, the skill's purpose covers the whole request. A match below 0.2 is most likely chance.
    """

    name: str
    score: float


def rank(query: str, documents: Sequence[SkillDocument]) -> list[Match]:
    """Return all documents as matches, best first.

    Equal scores are ordered by priority (high first), then by name.
    """
    asked = read_query(query)
    scored = [(document, score(asked, analyse(document))) for document in documents]
    scored.sort(key=lambda pair: (-pair[1], -pair[0].priority, pair[0].name))
    return [Match(document.name, points) for document, points in scored]


def score(query: Query, skill: Analysed) -> float:
    """Return the score of a skill for a query, from 0 to 1, rounded to four digits."""
    evidence = skill.evidence
    best = [0.0] * len(query.wants)
    for token in evidence.keys() & query.answers.keys():
        sure = evidence[token]
        for place, weight in query.answers[token]:
            best[place] = max(best[place], weight * sure)
    matched = sum(want.weight * found for want, found in zip(query.wants, best, strict=True))
    near = max(0.0, (nearness(query.direction, skill.direction) - NEAR) / (1 - NEAR))
    believed = matched + NEAR_WEIGHT * near
    asked_for = _asked_for(query, skill)
    if not believed:
        return asked_for
    covered = matched / query.total
    points = covered
    if skill.name:
        points += (
            NAME_BONUS * len(skill.name.intersection(query.stems)) / len(skill.name) * (1 - points)
        )
    pairs = sum(1 for pair in pairwise(query.stems) if pair in skill.pairs)
    points += PAIR_BONUS * min(2, pairs) * (1 - points)
    points += NEAR_SHARE * near * (1 - points)
    points *= believed / (believed + LITTLE * (1 - covered))
    points = float(min(1.0, points) ** SPREAD)
    return round(points + asked_for * (1 - points), 4)


def _asked_for(query: Query, skill: Analysed) -> float:
    """Return the bonus for a query that names the skill or has one of its triggers."""
    share = 0.0
    text = query.message.stems
    if skill.called in text:
        is_one_word = skill.called.count(" ") == 2
        share = NAMED_PLAINLY if is_one_word and not _is_called_a_skill(skill, text) else NAMED
    if matching(skill.triggers, query.message) is not None:
        share += TRIGGERED * (1 - share)
    return share


def _is_called_a_skill(skill: Analysed, text: str) -> bool:
    return f"{skill.called}skill " in text or f" skill{skill.called}" in text
