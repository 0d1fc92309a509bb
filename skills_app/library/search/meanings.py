"""Knowledge about single words: how much each says, and which words it occurs near.

`tests/skills_app/library/search/train.py` learned `words.tsv` from public skills and handbooks: per
stem how rare it is (0 to 100) and its direction in a space of words, DIMENSIONS numbers of 4 bits.
Words that are used in the same surroundings point the same way.
"""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Iterable
from functools import cache
from operator import mul
from pathlib import Path

TABLE = Path(__file__).with_name("words.tsv")
DIMENSIONS = 48
UNKNOWN = 1.0
"""The rarity of a word that is not in the table."""

Direction = tuple[float, ...]
NOWHERE: Direction = (0.0,) * DIMENSIONS


def rarity(stem: str) -> float:
    """Return the rarity, 0 to 1: little for words that most texts have, 1 for rare ones."""
    known = _table().get(stem)
    return int(known.partition("\t")[0]) / 100 if known else UNKNOWN


def direction(stems: Iterable[tuple[str, float]]) -> Direction:
    """Return the direction of weighted stems, of length 1; NOWHERE if no stem is known."""
    total = [0.0] * DIMENSIONS
    for stem, weight in stems:
        known = _direction(stem)
        if known:
            total = [have + weight * more for have, more in zip(total, known, strict=True)]
    return _unit(total)


def between(a: Direction, b: Direction) -> Direction:
    """Return the middle between two directions."""
    return _unit([one + other for one, other in zip(a, b, strict=True)])


def nearness(a: Direction, b: Direction) -> float:
    """Return the cosine of two directions."""
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
    """Return the rest of the line of each stem. A process uses few of the lines."""
    lines = TABLE.read_text(encoding="ascii").splitlines()
    return dict(line.split("\t", 1) for line in lines)
