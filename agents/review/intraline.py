"""Differences within a pair of changed lines, by words."""

from __future__ import annotations

import re

from agents.review.matching import Steps, changed_blocks
from agents.review.spans import Region

_TOKENS = re.compile(r"\w+|\s+|[^\w\s]")
_LONGEST = 2_000
_PAIR = 40
"""Minimum cost in steps of a comparison."""
_LIKE_ENOUGH = 0.4
"""Lines with a smaller common part are two different lines, not a changed one."""


def changed_within(old: str, new: str, steps: Steps) -> tuple[list[Region], list[Region]]:
    """Return the differing regions of `old` and `new`, or none if they have little in common."""
    if not old or not new or max(len(old), len(new)) > _LONGEST or steps.left < 0:
        return [], []
    a, b = _TOKENS.findall(old), _TOKENS.findall(new)
    if not steps.spend(len(a) + len(b) + _PAIR):
        return [], []
    blocks = changed_blocks(a, b, steps)
    old_at, new_at = _offsets(a), _offsets(b)
    in_old = [Region(old_at[at.old_start], old_at[at.old_end], "changed") for at in blocks]
    in_new = [Region(new_at[at.new_start], new_at[at.new_end], "changed") for at in blocks]
    same = len(old) - sum(region.end - region.start for region in in_old)
    if same < _LIKE_ENOUGH * max(len(old), len(new)):
        return [], []
    return in_old, in_new


def _offsets(tokens: list[str]) -> list[int]:
    offsets = [0]
    for token in tokens:
        offsets.append(offsets[-1] + len(token))
    return offsets
