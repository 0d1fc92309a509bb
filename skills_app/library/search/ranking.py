"""Rank skills for a request.

The words decide between few skills. Between more than FEW, a language model reads the request as
well. Apart from this, a skill's score does not depend on other skills.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import pairwise
from typing import TYPE_CHECKING

from agents.kernel.lazy_modules import lazy_modules
from skills_app.library.search.document import Analysed, SkillDocument, analyse
from skills_app.library.search.query import Query, nearness, read_query
from skills_app.library.search.triggers import matching

if TYPE_CHECKING:
    from skills_app.library.search.kept import Kept

with lazy_modules:
    # numpy and the weights take 0.2 s.
    from skills_app.library.search import meaning

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

FEW = 40
"""Of so few skills, the words nearly always find the right one."""
MEANING = 0.6
"""The share of the meaning in a score; the words have the rest."""
CANDIDATES = 16
"""How many skills without a vector are read for a request, those with the best words: 0.2 s."""

SHOWN, FIRST = 0.1, 3
"""A list of results has the FIRST results, and further ones with a score from SHOWN."""


@dataclass(frozen=True, slots=True)
class Match:
    """A skill and its `score` for a query, from 0 to 1.

    With 1, the skill's purpose covers the whole request. A match below 0.2 is most likely chance.
    """

    name: str
    score: float


def rank(query: str, documents: Sequence[SkillDocument], kept: Kept | None = None) -> list[Match]:
    """Return all documents, best first; ties by priority (high first), then by name.

    More than FEW documents are read from `kept`, and written to it.
    """
    if kept is None or len(documents) <= FEW:
        found = scores(query, [*map(analyse, documents)])
    else:
        skills = kept.analysed(documents)
        found = scores(query, skills)
        kept.keep(documents, skills)
    scored = list(zip(documents, found, strict=True))
    scored.sort(key=lambda pair: (-pair[1], -pair[0].priority, pair[0].name))
    return [Match(document.name, points) for document, points in scored]


def scores(query: str, skills: Sequence[Analysed]) -> list[float]:
    """Return the score of each skill, 0 to 1, in steps of a ten-thousandth."""
    asked = read_query(query)
    if len(skills) <= FEW or not asked.wants:
        return [score(asked, skill) for skill in skills]
    words = [_by_words(asked, skill) for skill in skills]
    found = []
    for skill, points, near in zip(skills, words, _by_meaning(query, skills, words), strict=True):
        points += MEANING * (near - points)
        found.append(_with_name(asked, skill, points))
    return found


def score(query: Query, skill: Analysed) -> float:
    """Return the score by words alone."""
    return _with_name(query, skill, _by_words(query, skill))


def _by_meaning(query: str, skills: Sequence[Analysed], words: list[float]) -> list[float]:
    """Return the nearness of each skill, 0 to 1; 0 for a skill that the model has not read."""
    vectors = {place: skill.vector for place, skill in enumerate(skills) if skill.vector}
    unread = [place for place in range(len(skills)) if place not in vectors]
    read = nlargest(CANDIDATES, unread, key=words.__getitem__)
    if read:
        new = meaning.vectors_of([skills[place].said for place in read])
        vectors.update(zip(read, new, strict=True))
    near = dict(zip(vectors, meaning.nearness(query, [*vectors.values()]), strict=True))
    return [near.get(place, 0.0) for place in range(len(skills))]


def _by_words(query: Query, skill: Analysed) -> float:
    evidence = skill.evidence
    best = [0.0] * len(query.wants)
    for token in evidence.keys() & query.answers.keys():
        sure = evidence[token]
        for place, weight in query.answers[token]:
            best[place] = max(best[place], weight * sure)
    matched = sum(want.weight * found for want, found in zip(query.wants, best, strict=True))
    near = max(0.0, (nearness(query.direction, skill.direction) - NEAR) / (1 - NEAR))
    believed = matched + NEAR_WEIGHT * near
    if not believed:
        return 0.0
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
    return float(min(1.0, points) ** SPREAD)


def _with_name(query: Query, skill: Analysed, points: float) -> float:
    return round(points + _asked_for(query, skill) * (1 - points), 4)


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
