"""Ranking of skills for a request: a pure function of the request and of each skill.

A skill's score does not depend on other skills, so scores of different libraries compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from skills_app.library.search.document import Analysed, SkillDocument, analyse
from skills_app.library.search.query import Query, nearness, read_query
from skills_app.library.search.triggers import matching

NAME_BONUS = 0.25
"""For a query that has all words of the skill's name."""
PAIR_BONUS = 0.08
"""For each pair of words of the query that are neighbours in the skill's description as well."""
NAMED, NAMED_PLAINLY = 0.5, 0.2
"""For a query with the whole name: of several words or next to "skill", and of one word."""
TRIGGERED = 0.25
"""For a query with one of the skill's triggers."""
NEAR, NEAR_SHARE = 0.4, 0.6
"""Skills whose direction is nearer to the query's than NEAR gain up to NEAR_SHARE …"""
NEAR_WEIGHT = 0.2
"""… and this much counts as found, so that they have a rank without a common word."""
LITTLE = 0.4
"""The found weight at which a score is reliable although much is missing."""
SPREAD = 1.1
"""Puts the scores of right skills above 0.2 and of chance finds below."""

SHOWN, FIRST = 0.1, 3
"""A list of results shows scores from SHOWN on, and always the FIRST results."""


@dataclass(frozen=True, slots=True)
class Match:
    """`score`: 0 to 1. With 1, the skill's purpose covers the whole request. Below 0.2 it is most
    likely chance.
    """

    name: str
    score: float


def rank(query: str, documents: Sequence[SkillDocument]) -> list[Match]:
    """Return all documents, best first; ties by priority (high first), then by name."""
    asked = read_query(query)
    scored = [(document, score(asked, analyse(document))) for document in documents]
    scored.sort(key=lambda pair: (-pair[1], -pair[0].priority, pair[0].name))
    return [Match(document.name, points) for document, points in scored]


def score(query: Query, skill: Analysed) -> float:
    """Return the score, 0 to 1, in steps of a ten-thousandth."""
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
    """Return the share for a request that names the skill, or has one of its triggers."""
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
