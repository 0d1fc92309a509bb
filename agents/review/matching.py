"""The differing parts of two sequences, in bounded time for any input.

First, common prefixes and suffixes are removed. Then elements that occur once on both sides divide
the rest (as in patience diff), and Myers' greedy algorithm compares the parts between them. Each
operation costs steps. At the limit, the current part becomes one block, removed and added: less
detailed, but correct. difflib is cubic on repeated lines, and agents control the lines.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LINE_STEPS = 600_000
"""Limit for the lines of one diff: about a quarter of a second."""
_MAX_EDITS = 600


@dataclass(frozen=True, slots=True)
class Block:
    """A change: `old[old_start:old_end]` becomes `new[new_start:new_end]`. One may be empty."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


class Steps:
    """The remaining budget for comparisons."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, steps: int) -> bool:
        """Spend `steps`. Return False if the budget is exhausted."""
        self.left -= steps
        return self.left >= 0


@dataclass(frozen=True, slots=True)
class _Match:
    old: int
    new: int
    length: int


def changed_blocks(old: Sequence[str], new: Sequence[str], steps: Steps) -> list[Block]:
    """Return the differing blocks in order. Parts between them are equal."""
    ids: dict[str, int] = {}
    a = [ids.setdefault(item, len(ids)) for item in old]
    b = [ids.setdefault(item, len(ids)) for item in new]
    blocks, at_old, at_new = [], 0, 0
    for match in [*_matches(a, b, steps), _Match(len(a), len(b), 0)]:
        if match.old > at_old or match.new > at_new:
            blocks.append(Block(at_old, match.old, at_new, match.new))
        at_old, at_new = match.old + match.length, match.new + match.length
    return blocks


def _matches(a: list[int], b: list[int], steps: Steps) -> list[_Match]:
    matches: list[_Match] = []
    todo = [(0, len(a), 0, len(b))]
    while todo:
        a_start, a_end, b_start, b_end = todo.pop()
        first = a_start
        while a_start < a_end and b_start < b_end and a[a_start] == b[b_start]:
            a_start, b_start = a_start + 1, b_start + 1
        matches.append(_Match(first, b_start - (a_start - first), a_start - first))
        last = a_end
        while a_start < a_end and b_start < b_end and a[a_end - 1] == b[b_end - 1]:
            a_end, b_end = a_end - 1, b_end - 1
        matches.append(_Match(a_end, b_end, last - a_end))
        if a_start == a_end or b_start == b_end:
            continue
        if not steps.spend(a_end - a_start + b_end - b_start):
            continue
        if anchors := _anchors(a, b, a_start, a_end, b_start, b_end):
            for at_a, at_b in anchors:
                todo.append((a_start, at_a, b_start, at_b))
                a_start, b_start = at_a, at_b
            todo.append((a_start, a_end, b_start, b_end))
        else:
            pairs = _shortest_edit(a[a_start:a_end], b[b_start:b_end], steps)
            matches += [_Match(a_start + x, b_start + y, 1) for x, y in pairs]
    matches = [match for match in matches if match.length]
    return sorted(matches, key=lambda match: match.old)


def _anchors(
    a: list[int], b: list[int], a_start: int, a_end: int, b_start: int, b_end: int
) -> list[tuple[int, int]]:
    """Return pairs of positions of elements that are unique on both sides, rising on both."""
    in_a = _once(a, a_start, a_end)
    in_b = _once(b, b_start, b_end)
    pairs = [(place, in_b[item]) for item, place in in_a.items() if item in in_b]
    # The longest rising sequence of positions in b, by patience sorting.
    tops: list[int] = []
    piles: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        pile = bisect_left(tops, place)
        before.append(piles[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(place)
            piles.append(number)
        else:
            tops[pile], piles[pile] = place, number
    rising, number = [], piles[-1] if piles else -1
    while number >= 0:
        rising.append(pairs[number])
        number = before[number]
    return rising[::-1]


def _once(items: list[int], start: int, end: int) -> dict[int, int]:
    """Return the position of each element that occurs once, in order of positions."""
    places: dict[int, int] = {}
    for place in range(start, end):
        places[items[place]] = -1 if items[place] in places else place
    return {item: place for item, place in places.items() if place >= 0}


def _shortest_edit(a: list[int], b: list[int], steps: Steps) -> list[tuple[int, int]]:
    """Return pairs of equal positions by Myers' algorithm, or none if it takes too many steps."""
    most = min(len(a) + len(b), _MAX_EDITS)
    reach, middle = [0] * (2 * most + 3), most + 1
    trace: list[list[int]] = []
    for edits in range(most + 1):
        trace.append(reach[middle - edits - 1 : middle + edits + 2])
        walked = 0
        for k in range(-edits, edits + 1, 2):
            at = middle + k
            down = k == -edits or (k != edits and reach[at - 1] < reach[at + 1])
            x = first = reach[at + 1] if down else reach[at - 1] + 1
            while x < len(a) and 0 <= x - k < len(b) and a[x] == b[x - k]:
                x += 1
            walked += x - first + 1
            reach[at] = x
            if x >= len(a) and x - k >= len(b):
                return _walk_back(trace, len(a), len(b))
            if walked > steps.left:
                break
        if not steps.spend(walked):
            break
    return []


def _walk_back(trace: list[list[int]], x: int, y: int) -> list[tuple[int, int]]:
    pairs = []
    for edits in range(len(trace) - 1, -1, -1):
        reach, middle = trace[edits], edits + 1
        k = x - y
        down = k == -edits or (k != edits and reach[middle + k - 1] < reach[middle + k + 1])
        from_k = k + 1 if down else k - 1
        from_x = reach[middle + from_k]
        from_y = from_x - from_k
        while x > from_x and y > max(from_y, 0):
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = from_x, from_y
    return pairs[::-1]


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
