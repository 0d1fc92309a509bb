"""Turn a request into the parts that it asks for, and find the words that answer each part.

`tests/skills_app/library/search/train.py` learned `words.tsv` from public skills and handbooks. For
each stem it has the rarity (0 to 100) and the direction in a word space: DIMENSIONS numbers of 4
bits. Words that are used in the same surroundings have similar directions.
"""

from __future__ import annotations

import math
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from operator import mul
from pathlib import Path

from skills_app.library.search.tokens import (
    RELATED,
    SAME,
    STOP,
    known_words,
    stem,
    vocabulary,
    words,
)
from skills_app.library.search.triggers import Message

TABLE = Path(__file__).with_name("words.tsv")
DIMENSIONS = 48
UNKNOWN = 1.0
"""The rarity of a word that is not in the table."""

Direction = tuple[float, ...]
NOWHERE: Direction = (0.0,) * DIMENSIONS


@lru_cache(maxsize=65_536)
def rarity(stem: str) -> float:
    """Return the rarity of a stem, from 0 for words that most texts have to 1 for rare ones."""
    known = _table().get(stem)
    return int(known.partition("\t")[0]) / 100 if known else UNKNOWN


def direction(tokens: Iterable[tuple[str, float]]) -> Direction:
    """Return the direction of weighted stems as a unit vector; NOWHERE if no stem is known."""
    total = [0.0] * DIMENSIONS
    for token, weight in tokens:
        known = _direction(token)
        if known:
            total = [have + weight * more for have, more in zip(total, known, strict=True)]
    return _unit(total)


def between(a: Direction, b: Direction) -> Direction:
    """Return the unit vector in the middle of two directions."""
    return _unit([one + other for one, other in zip(a, b, strict=True)])


def nearness(a: Direction, b: Direction) -> float:
    """Return the cosine of the angle between two directions."""
    return sum(map(mul, a, b))


@cache
def _direction(stem: str) -> Direction | None:
    known = _table().get(stem)
    if known is None:
        return None
    data = b64decode(known.partition("\t")[2])
    return _unit([part for byte in data for part in ((byte >> 4) - 8, (byte & 15) - 8)])


def _unit(vector: list[float] | list[int]) -> Direction:
    length = math.sqrt(sum(part * part for part in vector))
    return tuple(part / length for part in vector) if length else NOWHERE


@cache
def _table() -> dict[str, str]:
    """Return the unparsed rest of the line of each stem. A process uses few of the lines."""
    lines = TABLE.read_text(encoding="ascii").splitlines()
    return dict(line.split("\t", 1) for line in lines)


MAX_CHARACTERS = 4_000
"""The number of characters of a query that are read: pasted text usually follows the request."""
MAX_WANTS = 40
PHRASE_RARITY = 1.0
"""The rarity of a phrase with a stop word ("sign off"), which its single words do not express."""

SHORTEST_CORRECTED = 5
"""The number of letters from which a stem can be a typing error.

Short stems resemble many words.
"""
CORRECTED = 0.8
"""How well a word that differs in one letter answers an unknown word, from 0 to 1."""
MOST_CORRECTIONS, MOST_CORRECTED = 2, 10
"""The number of words for one typing error, likeliest first; of corrected words in one query."""

_SPELLINGS = tuple(
    (re.compile(pattern), other)
    for pattern, other in (
        (r"(?<=\w{3}[^aeiou])is(?=(?:e|ed|es|er|ers|ing|ation|ations)$)", "iz"),
        (r"(?<=\w{3}[^aeiou])iz(?=(?:e|ed|es|er|ers|ing|ation|ations)$)", "is"),
        (r"(?<=\w\w)our(?=(?:s|ed|ing|al|ful)?$)", "or"),
    )
)
"""Patterns of British and American spellings, with their replacements.

A pattern may also fit other words. This does no harm, as no text has the result.
"""

_AMOUNT = re.compile(r"\d+(?:[km]|[kmg]b|px|am|pm|st|nd|rd|th|s|ms|x)?")


@dataclass(frozen=True, slots=True)
class Want:
    """One part of a request.

    `answers` are pairs (stem, how well it answers the part, 0 to 1).
    """

    answers: tuple[tuple[str, float], ...]
    weight: float


@dataclass(frozen=True)
class Query:
    """A request as a list of parts.

    `total` is the weight of all parts. `stems` has the informative stems in order.
    """

    wants: tuple[Want, ...]
    total: float
    stems: tuple[str, ...]
    direction: Direction
    message: Message
    """The text of the request, for triggers and names."""

    @cached_property
    def answers(self) -> dict[str, list[tuple[int, float]]]:
        """Return for each stem the parts that it answers: (index in `wants`, how well, 0 to 1)."""
        found: dict[str, list[tuple[int, float]]] = {}
        for place, want in enumerate(self.wants):
            for token, weight in want.answers:
                found.setdefault(token, []).append((place, weight))
        return found


@lru_cache(maxsize=256)
def read_query(text: str) -> Query:
    """Return `text` as a query. A text without informative words gives a query without parts."""
    spelled = [*words(text[:MAX_CHARACTERS])]
    tokens = [stem(word) for word in spelled]
    families = vocabulary()
    phrases = families.find_phrases(tokens)
    wants: dict[str, Want] = {}
    meant = _Meant()
    corrected: dict[str, str] = {}
    for at, token in enumerate(tokens):
        if token in STOP or token in wants or _AMOUNT.fullmatch(token):
            continue
        inside = [name for start, end, name in phrases if start <= at < end]
        answers = {token: 1.0}
        others = meant.by(spelled[at], token)
        corrected[token] = next(iter(others), token)
        for name, sure in [*((name, 1.0) for name in inside or [token]), *others.items()]:
            answers[name] = max(sure, answers.get(name, 0.0))
            for other, weight in families.related.get(name, {}).items():
                answers[other] = max(sure * weight, answers.get(other, 0.0))
        rare = [rarity(name) for name in (token, *others)]
        wants[token] = Want(tuple(answers.items()), sum(rare) / len(rare))
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
        direction(
            (known, rarity(known))
            for known in dict.fromkeys(map(corrected.get, informative, informative))
        ),
        Message.of(text[:MAX_CHARACTERS]),
    )


class _Meant:
    """Finds stems that the author of a query may have meant: corrected or other spellings."""

    def __init__(self) -> None:
        self._left = MOST_CORRECTED

    def by(self, word: str, token: str) -> dict[str, float]:
        """Return other stems for `word`, and how well each answers it (0 to 1).

        `token` is the stem of `word`.
        """
        for pattern, other in _SPELLINGS:
            if pattern.search(word):
                changed = stem(pattern.sub(other, word))
                return {changed: SAME} if changed != token else {}
        if len(token) < SHORTEST_CORRECTED or not token.isascii() or not token.isalpha():
            return {}
        if self._left == 0 or _is_known(token):
            return {}
        self._left -= 1
        words_first = {known_words()[other] for other in _edits(word) if other in known_words()}
        others = words_first | {other for other in _edits(token) if _is_known(other)}
        likely = sorted(
            (other for other in others - STOP if len(other) >= SHORTEST_CORRECTED),
            key=lambda other: (other not in words_first, rarity(other), other),
        )
        return dict.fromkeys(likely[:MOST_CORRECTIONS], CORRECTED)


def _is_known(token: str) -> bool:
    return token in _table() or token in vocabulary().related


def _edits(token: str) -> Iterator[str]:
    """Yield all words that one typing error separates from `token`, with the same first letter."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    for at in range(1, len(token) + 1):
        start, rest = token[:at], token[at:]
        yield from (start + letter + rest for letter in letters)
        if rest:
            yield start + rest[1:]
            yield from (start + letter + rest[1:] for letter in letters)
        if len(rest) > 1:
            yield start + rest[1] + rest[0] + rest[2:]


def _once(want: Want, own: str, wants: dict[str, Want]) -> Want:
    """Return `want` without related words that the request itself contains as parts.

    In "a kubernetes cluster", for example, "cluster" does not answer "kubernetes" as well.
    """
    kept = [
        (token, weight)
        for token, weight in want.answers
        if token == own or token not in wants or weight > RELATED
    ]
    return Want(tuple(kept), want.weight)
