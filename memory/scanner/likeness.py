"""How much a passage reads like an attack: a linear model over words, learned from labelled texts.

It finds what no list of phrases foresees: standing orders, claims of consent and quiet exceptions
in everyday words. `likeness.tsv` holds its weights, which `tests/memory/scanner/train.py` makes of
the labelled texts beside it. A sentence's features are its words, cut to six letters, its pairs of
neighbours and of words with one between; three sentences in a row are judged together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from memory.scanner.finding import Hit, Severity

CUT = 6
"""Letters of a word that count: what follows is mostly grammar."""
TOGETHER = 3
"""Sentences that are judged at once."""
LEAST = 5
"""Known features without which a passage says too little to be judged."""
FLOOR = 200.0
"""The least norm (squared) of a passage: few words say little."""
MAX_WORDS = 120
"""Words of a sentence that count: lists and tables have no full stop."""
PATTERN = "reads-like-an-attack"
DESCRIPTION = "Reads like text that steers an agent against its user"
ALARM = 0.45
ALARM_STEP = 0.1
ALARM_MOST = 0.95
FEW = 4
"""A text of FEW passages alarms above ALARM; each doubling adds ALARM_STEP, up to ALARM_MOST."""
DANGER = 0.8
MOST = 40
"""Passages of one text that are reported, those that read worst."""
DOUBT = 0.1
"""Below it no rule is tried. Of 520 attacks that a rule finds one in two hundred lies there, of
ordinary passages nine in ten."""
WEIGHTS = Path(__file__).with_name("likeness.tsv")
SCALE = 1000

_SENTENCE = re.compile(r"[^\n.!?。！？;]+(?:[.!?;](?!\s)[^\n.!?。！？;]*)*[.!?。！？;]*")
_WORD = re.compile(
    r"[a-z0-9à-öø-ÿ\u0100-\u017f\u0400-\u04ff\u0600-\u06ff]+|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]"
    r"|[@:%=|<>$/]"
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """text[start:end] and its features."""

    start: int
    end: int
    features: set[str]


@dataclass(frozen=True, slots=True)
class Likeness:
    """text[start:end] reads like an attack with the probability `score`; `worst`: its sentence."""

    start: int
    end: int
    score: float
    worst: tuple[int, int]


class _Weighed(NamedTuple):
    """A sentence with the sum of its weights, of their squares, and how many it has."""

    start: int
    end: int
    total: float
    norm: float
    known: int


def like_attacks(found: list[Likeness]) -> Iterator[Hit]:
    """Those of a text's passages that read like an attack.

    A long text has more passages that do so by chance: the more there are, the surer one must be.
    """
    alarm = min(ALARM_MOST, ALARM + ALARM_STEP * math.log2(max(1.0, len(found) / FEW)))
    alarming = sorted((p for p in found if p.score > alarm), key=lambda p: -p.score)
    for passage in alarming[:MOST]:
        severity: Severity = "danger" if passage.score > DANGER else "warning"
        yield Hit(PATTERN, DESCRIPTION, severity, *passage.worst)


def only_doubtful(text: str, found: list[Likeness]) -> str:
    """`text` with blanks for the passages that do not read like an attack at all."""
    parts, at = [], 0
    for passage in found:
        if passage.score <= DOUBT:
            continue
        start = max(at, passage.start)
        parts.append(" " * (start - at))
        parts.append(text[start : max(start, passage.end)])
        at = max(start, passage.end)
    parts.append(" " * (len(text) - at))
    return "".join(parts)


def sentence_features(text: str) -> set[str]:
    """The features of one folded sentence."""
    words = [word[:CUT] for word in _WORD.findall(text)[:MAX_WORDS]]
    features = set(words)
    features.update(map(" ".join, pairwise(words)))
    features.update(map(" _ ".join, zip(words, words[2:], strict=False)))
    return features


def sentences_of(text: str) -> Iterator[Sentence]:
    """The sentences of a folded text that have words."""
    for found in _SENTENCE.finditer(text):
        features = sentence_features(found[0])
        if features:
            start = found.start() + len(found[0]) - len(found[0].lstrip())
            yield Sentence(start, found.end(), features)


def passages(text: str) -> Iterator[Likeness]:
    """Each TOGETHER sentences in a row of a folded text; all of a shorter one."""
    weights, bias = _model()
    get = weights.get
    window: list[_Weighed] = []
    count = 0
    for sentence in sentences_of(text):
        total = norm = 0.0
        known = 0
        for feature in sentence.features:
            found = get(feature)
            if found is not None:
                total += found[0]
                norm += found[1]
                known += 1
        window.append(_Weighed(sentence.start, sentence.end, total, norm, known))
        count += 1
        if len(window) > TOGETHER:
            window.pop(0)
        if len(window) == TOGETHER:
            yield _judged(window, bias)
    if 0 < count < TOGETHER:
        yield _judged(window, bias)


def _judged(window: list[_Weighed], bias: float) -> Likeness:
    worst = max(window, key=lambda part: part.total)
    score = 0.0
    if sum(part.known for part in window) >= LEAST:
        norm = sum(part.norm for part in window)
        logit = bias + sum(part.total for part in window) / math.sqrt(max(norm, FLOOR))
        score = 1.0 / (1.0 + math.exp(-max(-40.0, min(40.0, logit))))
    return Likeness(window[0].start, window[-1].end, score, (worst.start, worst.end))


@cache
def _model() -> tuple[dict[str, tuple[float, float]], float]:
    """(weight, square) by feature, and the bias, which stands in the first line."""
    first, *lines = WEIGHTS.read_text(encoding="utf-8").splitlines()
    weights = {}
    for line in lines:
        feature, weight, square = line.split("\t")
        weights[feature] = (int(weight) / SCALE, int(square) / SCALE)
    return weights, int(first) / SCALE
