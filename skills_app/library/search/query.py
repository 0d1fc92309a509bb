"""A request as wants, and the words in a skill that answer each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from skills_app.library.search.meanings import Direction, direction, rarity
from skills_app.library.search.tokens import stems
from skills_app.library.search.vocabulary import RELATED, STOP, vocabulary

MAX_CHARACTERS = 4_000
"""Of a query: the request is usually at its start, followed by pasted text."""
MAX_WANTS = 40
PHRASE_RARITY = 1.0
"""Of a phrase with a stop word in it ("sign off"): its own words do not express it."""

_AMOUNT = re.compile(r"\d+(?:[km]|[kmg]b|px|am|pm|st|nd|rd|th|s|ms|x)?")


@dataclass(frozen=True, slots=True)
class Want:
    """One part of a request. `answers`: (stem, 0 to 1), the words that answer it and how well."""

    answers: tuple[tuple[str, float], ...]
    weight: float


@dataclass(frozen=True)
class Query:
    """`total` is the weight of all wants. `stems` are the informative ones in order."""

    wants: tuple[Want, ...]
    total: float
    stems: tuple[str, ...]
    direction: Direction

    @cached_property
    def answers(self) -> dict[str, list[tuple[int, float]]]:
        """Return by stem: (place in `wants`, how well it answers that one)."""
        found: dict[str, list[tuple[int, float]]] = {}
        for place, want in enumerate(self.wants):
            for token, weight in want.answers:
                found.setdefault(token, []).append((place, weight))
        return found


@lru_cache(maxsize=256)
def read_query(text: str) -> Query:
    """Return the query in any text; a text without informative words has no wants."""
    tokens = stems(text[:MAX_CHARACTERS])
    families = vocabulary()
    phrases = families.find_phrases(tokens)
    wants: dict[str, Want] = {}
    for at, token in enumerate(tokens):
        if token in STOP or token in wants or _AMOUNT.fullmatch(token):
            continue
        inside = [name for start, end, name in phrases if start <= at < end]
        answers = {token: 1.0}
        for name in inside or [token]:
            answers[name] = 1.0
            for other, weight in families.related.get(name, {}).items():
                answers[other] = max(weight, answers.get(other, 0.0))
        wants[token] = Want(tuple(answers.items()), rarity(token))
    for start, end, name in phrases:
        if name not in wants and not STOP.isdisjoint(tokens[start:end]):
            answers = {name: 1.0, **families.related.get(name, {})}
            wants[name] = Want(tuple(answers.items()), PHRASE_RARITY)
    kept = tuple(_once(want, own, wants) for own, want in [*wants.items()][:MAX_WANTS])
    informative = tuple(token for token in tokens if token not in STOP)
    return Query(
        kept,
        sum(want.weight for want in kept),
        informative,
        direction((token, rarity(token)) for token in dict.fromkeys(informative)),
    )


def _once(want: Want, own: str, wants: dict[str, Want]) -> Want:
    """Return a want without related words that are wants themselves.

    For example, "cluster" does not answer "kubernetes" as well in "a kubernetes cluster".
    """
    kept = [
        (token, weight)
        for token, weight in want.answers
        if token == own or token not in wants or weight > RELATED
    ]
    return Want(tuple(kept), want.weight)
