"""Correct the scores of doubtful passages with the language model of `transformer`.

The linear model of `likeness` is fast and judges words. The language model is slow and judges how
words belong together, so it reads only some passages. The new score combines both. numpy and the
weights are imported at the first passage, because the import takes 0.2 s.
"""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module

from text_scanner.likeness import LEAST, Likeness

MOST_READ = 12
"""The maximum number of passages of a text that the model reads, highest scores first."""
WORDS = 0.6
MEANING = 0.5
BIAS = -0.1
"""The new logit is WORDS * linear model + MEANING * language model + BIAS."""
HARMLESS = 0.06
CLEAR = 0.95
"""Between HARMLESS and CLEAR, the language model may change the score of the linear model."""
LONG = 450
"""Of a passage with more characters, the model reads the part around the worst sentence."""
BEFORE = 100
CERTAIN = 0.001


def read_closely(text: str, passages: list[Likeness], *, is_content: bool) -> list[Likeness]:
    """Return `passages` of a folded text, with new scores for the passages that the model read.

    The model reads at most MOST_READ passages: those of which the linear model is unsure and, if
    `is_content`, those with too few known words.

    Args:
        is_content: Whether `text` is the content itself. Other views, such as decoded parts, often
            contain no language.
    """
    chosen = [
        one
        for one in passages
        if HARMLESS < one.score < CLEAR or (is_content and one.known < LEAST)
    ]
    chosen = sorted(chosen, key=lambda one: (-one.score, one.start))[:MOST_READ]
    new = _logits([_part(text, one) for one in chosen])
    scores = {one.start: _together(one, logit) for one, logit in zip(chosen, new, strict=True)}
    return [replace(one, score=scores.get(one.start, one.score)) for one in passages]


def _part(text: str, passage: Likeness) -> str:
    start = passage.start
    if passage.end - start > LONG:
        start = max(start, passage.worst[0] - BEFORE)
    return text[start : min(passage.end, start + 2 * LONG)]


def _together(passage: Likeness, logit: float) -> float:
    words = 0.0
    if passage.known >= LEAST:
        score = min(max(passage.score, CERTAIN), 1 - CERTAIN)
        words = math.log(score / (1 - score))
    logit = WORDS * words + MEANING * logit + BIAS
    return 1.0 / (1.0 + math.exp(max(-40.0, min(40.0, -logit))))


def _logits(texts: list[str]) -> list[float]:
    if not texts:
        return []
    found: list[float] = import_module("text_scanner.transformer").logits(texts)
    return found
