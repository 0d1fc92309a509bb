"""Unified diffs, in bounded time for any input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agents.review.matching import Block, Steps, changed_blocks

CONTEXT = 3


def unified_lines(
    old: Sequence[str], new: Sequence[str], steps: Steps, context: int = CONTEXT
) -> Iterator[str]:
    """Yield the hunks, without a header of file names. Lines have no line breaks.

    If `steps` is exhausted, the rest is one block, removed and added.
    """
    hunk: list[Block] = []
    for block in changed_blocks(old, new, steps):
        if hunk and block.old_start - hunk[-1].old_end > 2 * context:
            yield from _hunk(old, new, hunk, context)
            hunk = []
        hunk.append(block)
    if hunk:
        yield from _hunk(old, new, hunk, context)


def _hunk(
    old: Sequence[str], new: Sequence[str], blocks: Sequence[Block], context: int
) -> Iterator[str]:
    first, last = blocks[0], blocks[-1]
    before = min(context, first.old_start)
    after = min(context, len(old) - last.old_end)
    in_old = _range(first.old_start - before, last.old_end + after)
    in_new = _range(first.new_start - before, last.new_end + after)
    yield f"@@ -{in_old} +{in_new} @@"
    place = first.old_start - before
    for block in blocks:
        yield from _signed(" ", old, place, block.old_start)
        yield from _signed("-", old, block.old_start, block.old_end)
        yield from _signed("+", new, block.new_start, block.new_end)
        place = block.old_end
    yield from _signed(" ", old, place, place + after)


def _signed(sign: str, lines: Sequence[str], start: int, end: int) -> Iterator[str]:
    for number in range(start, end):
        yield sign + lines[number]


def _range(start: int, end: int) -> str:
    """Format a range as `diff -u` does: the line before it identifies an empty range."""
    if end - start == 1:
        return str(start + 1)
    return f"{start + (end > start)},{end - start}"
