"""Judge the meaning of doubtful passages with the language model of `transformer`.

The linear model of `likeness` is fast and knows words. The language model is slow and knows how
words belong together, so it reads only some passages. Both scores together decide. numpy and the
weights are imported at the first passage, because they take 0.2 s.
"""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module

from text_scanner.likeness import LEAST, Likeness

MOST_READ = 12
"""How many passages of a text are read, with the highest scores first."""
WORDS = 0.6
MEANING = 0.5
BIAS = -0.1
"""The logit is WORDS * that of the linear model + MEANING * that of the language model + BIAS."""
HARMLESS = 0.06
CLEAR = 0.95
"""Below HARMLESS and above CLEAR, the language model is too unsure to change the result."""
LONG = 450
"""In a passage of more characters the part around the most suspicious sentence is read."""
BEFORE = 100
CERTAIN = 0.001


def read_closely(text: str, passages: list[Likeness], *, is_content: bool) -> list[Likeness]:
    """Return the `passages` of a folded text, with new scores for those that were read.

    A passage is read unless the linear model is sure. One of too few known words is read too, but
    not in a form of the text that is not the content itself: that is often not language.
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
