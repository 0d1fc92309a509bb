"""Estimate how much a passage reads like an attack, with a linear model.

The model finds attacks that no list of phrases can predict: standing orders, claims of consent and
hidden exceptions in everyday words. `likeness.tsv` contains its weights, which
`tests/text_scanner/train.py` computes from the labelled texts in its directory. The features of a
sentence are its words, cut to six letters, and pairs of words that are neighbours or have one word
between them. The model judges three consecutive sentences together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

from text_scanner.finding import Hit, Severity

CUT = 6
"""The number of letters of a word that count. The rest is mostly grammar."""
TOGETHER = 3
"""The number of consecutive sentences in one passage."""
LEAST = 5
"""The minimum number of known features. A passage with fewer cannot be judged."""
SURE = 15
"""Below this number of known features, a low score is weak evidence, and the rules run as well."""
FLOOR = 200.0
"""The minimum squared norm of a passage's features, because few words are weak evidence."""
MAX_WORDS = 120
"""The number of words of a sentence that count: lists and tables have no full stop."""
PATTERN = "reads-like-an-attack"
DESCRIPTION = "Reads like text that steers an agent against its user"
ALARM = 0.46
ALARM_STEP = 0.1
ALARM_MOST = 0.95
FEW = 4
"""The limit is ALARM for FEW passages. Each doubling adds ALARM_STEP, up to ALARM_MOST."""
DANGER = 0.8
MOST = 40
"""The maximum number of passages that are reported for one text, highest scores first."""
DOUBT = 0.1
"""The rules do not run on passages below this score, except on short ones.

Below it are one in two hundred of 520 attacks that a rule finds, and nine in ten ordinary passages.
"""
WEIGHTS = Path(__file__).with_name("likeness.tsv")
SCALE = 1000

_SENTENCE = re.compile(r"[^\n.!?。！？;]+(?:[.!?;](?!\s)[^\n.!?。！？;]*)*[.!?。！？;]*")
_WORD = re.compile(
    r"[a-z0-9à-öø-ÿ\u0100-\u017f\u0400-\u04ff\u0600-\u06ff]+|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]"
    r"|[@:%=|<>$/]"
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """The sentence text[start:end] with its features."""

    start: int
    end: int
    features: set[str]


@dataclass(frozen=True, slots=True)
class Likeness:
    """The probability `score` that the passage text[start:end] is an attack.

    `worst` has the offsets of the sentence with the highest weight. `known` is the number of the
    passage's features that the model knows.
    """

    start: int
    end: int
    score: float
    known: int
    worst: tuple[int, int]

    @property
    def is_doubtful(self) -> bool:
        """Return whether the rules should run on the passage.

        This is the case for a high score, and for too few known words to trust the score.
        """
        return self.score > DOUBT or self.known < SURE


def like_attacks(passages: list[Likeness]) -> Iterator[Hit]:
    """Yield a hit for each passage of a text that reads like an attack.

    Chance finds more such passages in a long text, so the limit rises with the number of passages.
    """
    alarm = min(ALARM_MOST, ALARM + ALARM_STEP * math.log2(max(1.0, len(passages) / FEW)))
    alarming = sorted((p for p in passages if p.score > alarm), key=lambda p: -p.score)
    for passage in alarming[:MOST]:
        severity: Severity = "danger" if passage.score > DANGER else "warning"
        yield Hit(PATTERN, DESCRIPTION, severity, *passage.worst)


def only_doubtful(text: str, passages: list[Likeness]) -> str:
    """Return `text` with blanks in place of everything outside the doubtful passages."""
    parts, at = [], 0
    for passage in passages:
        if not passage.is_doubtful:
            continue
        start = max(at, passage.start)
        parts.append(" " * (start - at))
        parts.append(text[start : max(start, passage.end)])
        at = max(start, passage.end)
    parts.append(" " * (len(text) - at))
    return "".join(parts)


def sentence_features(text: str) -> set[str]:
    """Return the features of one folded sentence: words and pairs of words."""
    words = [word[:CUT] for word in _WORD.findall(text)[:MAX_WORDS]]
    features = set(words)
    features.update(map(" ".join, pairwise(words)))
    features.update(map(" _ ".join, zip(words, words[2:], strict=False)))
    return features


def sentences_of(text: str) -> Iterator[Sentence]:
    """Yield each sentence of a folded text that has words."""
    for found in _SENTENCE.finditer(text):
        features = sentence_features(found[0])
        if features:
            start = found.start() + len(found[0]) - len(found[0].lstrip())
            yield Sentence(start, found.end(), features)


def passages_of(text: str) -> list[Likeness]:
    """Return the passages of a folded text with their scores, in the order of the text.

    A passage is a window of three consecutive sentences (TOGETHER). A shorter text is one passage.
    A text without words has none.
    """
    weigh = _model().weigh
    window: list[_Weighed] = []
    found: list[Likeness] = []
    count = 0
    for sentence in _SENTENCE.finditer(text):
        words = _WORD.findall(sentence[0])
        if not words:
            continue
        start, end = sentence.span()
        if sentence[0][0].isspace():
            start = end - len(sentence[0].lstrip())
        window.append((start, end, *weigh(words)))
        count += 1
        if len(window) > TOGETHER:
            del window[0]
        if len(window) == TOGETHER:
            _judge(window, found)
    if 0 < count < TOGETHER:
        _judge(window, found)
    return found


_Weighed = tuple[int, int, float, float, int]
"""A sentence: start, end, sum of its weights, sum of their squares, number of known features."""


def _judge(window: list[_Weighed], found: list[Likeness]) -> None:
    total = norm = 0.0
    known = 0
    for part in window:
        total += part[2]
        norm += part[3]
        known += part[4]
    start, end = window[0][0], window[-1][1]
    worst = max(window, key=itemgetter(2))
    score = 0.0
    if known >= LEAST:
        logit = _model().bias + total / math.sqrt(max(norm, FLOOR))
        score = 1.0 / (1.0 + math.exp(max(-40.0, min(40.0, -logit))))
    found.append(Likeness(start, end, score, known, (worst[0], worst[1])))


class _Model:
    """The weights of the model.

    Words have numbers, so that a pair is a number and not a new string.
    """

    def __init__(self, lines: list[str]) -> None:
        first, *rest = lines
        self.bias = int(first) / SCALE
        self._words: dict[str, int] = {}
        self._weights: dict[int, tuple[float, float]] = {}
        for line in rest:
            feature, weight, square = line.split("\t")
            self._weights[self._key(feature)] = (int(weight) / SCALE, int(square) / SCALE)

    def _key(self, feature: str) -> int:
        first, *others = feature.split(" ")
        number = self._words.setdefault(first, len(self._words) + 1)
        if not others:
            return number
        second = self._words.setdefault(others[-1], len(self._words) + 1)
        pair = _SPAN * number + second
        return pair if len(others) == 1 else -pair

    def weigh(self, words: list[str]) -> tuple[float, float, int]:
        """Return (sum of a sentence's weights, sum of their squares, number of known features)."""
        number_of = self._words.get
        numbers = [number_of(word[:CUT], _UNKNOWN) for word in words[:MAX_WORDS]]
        # Do not skip pairs with an unknown word: a look-up that finds nothing is cheaper.
        pairs = [_SPAN * first + second for first, second in pairwise(numbers)]
        apart = zip(numbers, numbers[2:], strict=False)
        gaps = [-_SPAN * first - second for first, second in apart]
        found = [pair for pair in map(self._weights.get, {*numbers, *pairs, *gaps}) if pair]
        return sum([pair[0] for pair in found]), sum([pair[1] for pair in found]), len(found)


_SPAN = 1_000_000
_UNKNOWN = 0


@cache
def _model() -> _Model:
    return _Model(WEIGHTS.read_text(encoding="utf-8").splitlines())
