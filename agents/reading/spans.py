"""A line as spans: split exactly where something begins or ends that a reader should notice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import islice, pairwise

from agents.hidden_text import HIDDEN_RANGES, visible
from agents.reading.parts import Line, Mark, Span

_HIDDEN = re.compile(
    "[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in HIDDEN_RANGES) + "]+"
)
_TRAILING = re.compile(r"\s+\Z")
_TITLES = 3


@dataclass(frozen=True, slots=True)
class Region:
    """Characters `start` up to `end` of a line that bear a mark."""

    start: int
    end: int
    mark: Mark
    title: str = ""


def line_of(text: str, regions: Iterable[Region] = (), *, trailing: bool = False) -> Line:
    """The spans of one line without its line break. Regions may overlap; empty ones are ignored.

    `trailing` marks white space at the end. The texts together are `visible(text)`.
    """
    if not text:
        return ()
    found = [region for region in regions if region.start < region.end]
    found += [Region(hit.start(), hit.end(), "hidden") for hit in _HIDDEN.finditer(text)]
    if trailing and text[-1].isspace() and (hit := _TRAILING.search(text, _last_word(text))):
        found.append(Region(hit.start(), hit.end(), "trailing"))
    if not found:
        return (Span(text),)
    return tuple(_split(text, sorted(found, key=lambda region: region.start)))


def lines_of(text: str) -> tuple[Line, ...]:
    """A text's lines, where only line feeds end one. An empty text is one empty line."""
    return tuple(line_of(line) for line in text.split("\n"))


def _last_word(text: str) -> int:
    # Searching `\s+\Z` from the start is quadratic in runs of spaces.
    return len(text.rstrip())


def _split(text: str, regions: Sequence[Region]) -> Iterable[Span]:
    cuts = {0, len(text)}
    cuts.update(min(region.start, len(text)) for region in regions)
    cuts.update(min(region.end, len(text)) for region in regions)
    borders = sorted(cuts)
    ends: list[tuple[int, int]] = []
    marks: Counter[Mark] = Counter()
    titles: dict[int, str] = {}
    upcoming = 0
    for start, end in pairwise(borders):
        while ends and ends[0][0] <= start:
            gone = heappop(ends)[1]
            marks[regions[gone].mark] -= 1
            titles.pop(gone, None)
        while upcoming < len(regions) and regions[upcoming].start <= start:
            region = regions[upcoming]
            heappush(ends, (region.end, upcoming))
            marks[region.mark] += 1
            if region.title:
                titles[upcoming] = region.title
            upcoming += 1
        active = tuple(mark for mark, count in sorted(marks.items()) if count)
        yield Span(visible(text[start:end]), active, _title(titles))


def _title(titles: dict[int, str]) -> str:
    said = list(dict.fromkeys(islice(titles.values(), _TITLES)))
    more = len(titles) - _TITLES
    return "; ".join(said) + (f"; and {more} more" if more > 0 else "")
