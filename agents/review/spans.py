"""A line as spans, split at the boundaries of marks."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import accumulate, islice, pairwise

from agents.hidden_text import HIDDEN_RANGES, visible
from agents.review.parts import Finding, FoundLine, Line, Mark, Span, one_line, severity_of
from agents.review.room import Kept, Place, Room, end_share, excerpt, left_out

_HIDDEN = re.compile(
    "[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in HIDDEN_RANGES) + "]+"
)
_TRAILING = re.compile(r"\s+\Z")
_TITLES = 3


@dataclass(frozen=True, slots=True)
class Region:
    """The characters `start` up to `end` of a line with a mark."""

    start: int
    end: int
    mark: Mark
    title: str = ""


def line_of(
    text: str, regions: Iterable[Region] = (), *, trailing: bool = False, room: Room | None = None
) -> Line:
    """Return the spans of one line without its line break. Regions may overlap.

    Empty regions are ignored. `trailing` marks white space at the end. The texts of the spans
    together are `visible(text)`. A line with more marks than `room` allows is one span without
    marks.
    """
    if not text:
        return ()
    most = None if room is None else room.spans // 2 + 1
    found = list(islice((region for region in regions if region.start < region.end), most))
    hidden = islice(_HIDDEN.finditer(text), most)
    found += [Region(hit.start(), hit.end(), "hidden") for hit in hidden]
    if trailing and text[-1].isspace() and (hit := _TRAILING.search(text, _last_word(text))):
        found.append(Region(hit.start(), hit.end(), "trailing"))
    if not found:
        return (Span(text),)
    # Each region starts at most one span, and ends at most one.
    if room is not None and 2 * len(found) > room.spans:
        return (Span(visible(text)),)
    spans = tuple(_split(text, sorted(found, key=lambda region: region.start)))
    if room is not None:
        room.spans -= len(spans)
    return spans


def kept_line(
    text: str,
    kept: Kept[Place],
    room: Room,
    regions: Sequence[Region] = (),
    *,
    trailing: bool = False,
) -> Line:
    """Return the line of `text` at a position, cut in the middle if it does not fit."""
    start, end = kept.item
    missing = end - start - kept.characters
    if missing <= 0:
        return line_of(text[start:end], regions, trailing=trailing, room=room)
    after = end_share(kept.characters)
    head = kept.characters - after
    first = (region for region in regions if region.start < head)
    first = (replace(region, end=min(region.end, head)) for region in first)
    skipped = head + missing
    last = (region for region in regions if region.end > skipped)
    last = (
        replace(region, start=max(region.start - skipped, 0), end=region.end - skipped)
        for region in last
    )
    room.cut_characters += missing
    return (
        *line_of(text[start : start + head], first, room=room),
        cut_span(0, missing),
        *line_of(text[end - after : end], last, trailing=trailing, room=room),
    )


def cut_span(lines: int, characters: int) -> Span:
    """Return a span that replaces an omitted part."""
    return Span(left_out(lines, characters), ("cut",))


def lines_of(text: str, room: Room) -> tuple[Line, ...]:
    """Return the lines of a text. Only line feeds end a line. An empty text is one empty line.

    If not all lines fit, a line with only a `cut_span` replaces those in the middle.
    """
    shown = excerpt(text, room)
    cut = ((cut_span(shown.cut_lines, shown.cut_characters),),) if shown.cut_lines else ()
    head = tuple(kept_line(text, kept, room) for kept in shown.head)
    return (*head, *cut, *(kept_line(text, kept, room) for kept in shown.tail))


def _last_word(text: str) -> int:
    # A search for `\s+\Z` from the start is quadratic in runs of spaces.
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


MAX_LINES = 5_000
"""Maximum number of lines on a page: a file could have a hundred thousand line breaks."""


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text with marks. `lines` are spans for the template, `found` are findings in words.

    `left_out` is the number of omitted lines.
    """

    lines: tuple[Line, ...]
    found: tuple[FoundLine, ...]
    left_out: int
    has_hidden: bool


def marked_text(content: str, findings: Sequence[Finding]) -> MarkedText:
    """Return `content` with marks at `findings`, and a list of them with their lines.

    At most `MAX_LINES` lines are returned.
    """
    lines = content.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    regions: dict[int, list[Region]] = {}
    found = []
    for finding in findings:
        severity, title = severity_of(finding), one_line(finding.description)
        number = min(bisect_right(starts, finding.start) - 1, len(lines) - 1)
        found.append(FoundLine(number + 1, severity, title))
        while number < len(lines) and starts[number] < finding.end:
            start = max(finding.start - starts[number], 0)
            region = Region(start, finding.end - starts[number], severity, title)
            regions.setdefault(number, []).append(region)
            number += 1
    shown = tuple(
        line_of(line, regions.get(number, ())) for number, line in enumerate(lines[:MAX_LINES])
    )
    left_out = max(0, len(lines) - MAX_LINES)
    return MarkedText(shown, tuple(found), left_out, visible(content) != content)
