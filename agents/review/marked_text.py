"""A whole text for a page, with visible hidden characters and marked findings."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from agents.hidden_text import visible
from agents.review.parts import Finding, FoundLine, Line, one_line, severity_of
from agents.review.spans import Region, line_of

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
    """Return `content` with marks at `findings`, and a list of them with their lines."""
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
