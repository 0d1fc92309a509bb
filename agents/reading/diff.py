"""Two contents as the rows of a diff: no change is ever folded, unchanged stretches are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from agents.reading.intraline import WORD_STEPS, changed_within
from agents.reading.matching import LINE_STEPS, Block, Steps, changed_blocks
from agents.reading.parts import (
    DiffRow,
    DiffSection,
    DiffStatus,
    Finding,
    FoundLine,
    Note,
    RowKind,
    one_line,
    severity_of,
)
from agents.reading.spans import Region, line_of

CONTEXT = 3
_SHORTEST_GAP = 2


def diff_section(
    path: str,
    before: str | None,
    after: str | None,
    *,
    findings: Sequence[Finding] = (),
    notes: Sequence[Note] = (),
    excerpt: bool = False,
) -> DiffSection:
    """What becomes of the file `path`; None is no file.

    `findings` give places in `after`, as offsets in characters. With `excerpt` the two are only
    the texts to be replaced, not the file: without line numbers, and nothing is folded.
    """
    status: DiffStatus = "excerpt" if excerpt else _status(before, after)
    old, new = _lines(before or ""), _lines(after or "")
    marked = _Marked(after or "", new, findings)
    builder = _Rows(old, new, marked, numbered=not excerpt)
    rows = tuple(builder.rows(changed_blocks(old, new, Steps(LINE_STEPS))))
    if status == "unchanged":
        notes = [*notes, Note("Nothing would change: the content is the same.")]
    return DiffSection(
        one_line(path),
        status,
        rows,
        added=sum(row.kind == "added" for row in rows),
        removed=sum(row.kind == "removed" for row in rows),
        findings=marked.found,
        notes=tuple(notes),
    )


def _status(before: str | None, after: str | None) -> DiffStatus:
    if before is None:
        return "unchanged" if after is None else "new"
    if after is None:
        return "deleted"
    return "unchanged" if before == after else "changed"


def _lines(text: str) -> list[str]:
    """With their line feeds, so that a missing one at the end is a difference."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


class _Marked:
    """Findings by the line of the new content, counted from 0."""

    def __init__(self, text: str, lines: list[str], findings: Sequence[Finding]) -> None:
        starts = [0, *accumulate(len(line) for line in lines)]
        self.regions: dict[int, list[Region]] = {}
        found = []
        for finding in sorted(findings, key=lambda finding: finding.start):
            severity, title = severity_of(finding), one_line(finding.description)
            start = min(max(finding.start, 0), max(len(text) - 1, 0))
            end = min(max(finding.end, start + 1), len(text))
            line = bisect_right(starts, start) - 1 if text else None
            found.append(FoundLine(None if line is None else line + 1, severity, title))
            while line is not None and line < len(lines) and starts[line] < end:
                region = Region(max(start - starts[line], 0), end - starts[line], severity, title)
                self.regions.setdefault(line, []).append(region)
                line += 1
        self.found = tuple(found)


class _Rows:
    def __init__(self, old: list[str], new: list[str], marked: _Marked, *, numbered: bool) -> None:
        self._old, self._new = old, new
        self._marked = marked
        self._numbered = numbered
        self._steps = Steps(WORD_STEPS)

    def rows(self, blocks: list[Block]) -> Iterator[DiffRow]:
        old_at = new_at = 0
        for block in blocks:
            yield from self._same(old_at, new_at, block.new_start - new_at, before_change=True)
            yield from self._changed(block)
            old_at, new_at = block.old_end, block.new_end
        yield from self._same(old_at, new_at, len(self._new) - new_at, before_change=False)

    def _same(self, old: int, new: int, count: int, *, before_change: bool) -> Iterator[DiffRow]:
        """Unchanged lines: near a change or a finding as context, else folded."""
        shown = bytearray(count)
        after_change = new > 0 or old > 0
        near = [(0, CONTEXT)] if after_change else []
        near += [(count - CONTEXT, count)] if before_change else []
        near += [
            (line - new - CONTEXT, line - new + CONTEXT + 1)
            for line in self._marked.regions
            if new <= line < new + count
        ]
        for start, end in near if self._numbered else [(0, count)]:
            start, end = max(start, 0), min(end, count)
            shown[start:end] = b"\1" * max(end - start, 0)
        at = 0
        while at < count:
            if shown[at]:
                yield self._row("context", old + at, new + at)
                at += 1
                continue
            until = shown.find(1, at)
            until = count if until < 0 else until
            if until - at < _SHORTEST_GAP:
                yield self._row("context", old + at, new + at)
            else:
                yield DiffRow("gap", old + at + 1, new + at + 1, folded=until - at)
            at = until

    def _changed(self, block: Block) -> Iterator[DiffRow]:
        removed = range(block.old_start, block.old_end)
        added = range(block.new_start, block.new_end)
        within = [
            changed_within(
                self._old[old].removesuffix("\n"), self._new[new].removesuffix("\n"), self._steps
            )
            for old, new in zip(removed, added, strict=False)
        ]
        none: tuple[list[Region], list[Region]] = ([], [])
        pairs = len(within)
        for number, old in enumerate(removed):
            regions = (within[number] if number < pairs else none)[0]
            yield self._row("removed", old, None, regions)
        for number, new in enumerate(added):
            regions = (within[number] if number < pairs else none)[1]
            yield self._row("added", None, new, regions)

    def _row(
        self, kind: RowKind, old: int | None, new: int | None, regions: Sequence[Region] = ()
    ) -> DiffRow:
        if new is not None:
            text, marked = self._new[new], self._marked.regions.get(new, [])
        else:
            text, marked = self._old[old or 0], []
        content = text.removesuffix("\n")
        # White space at the end is worth a mark where it comes or goes, not where it stays.
        trailing = kind != "context"
        return DiffRow(
            kind,
            old + 1 if old is not None and self._numbered else None,
            new + 1 if new is not None and self._numbered else None,
            line_of(content, [*regions, *marked], trailing=trailing),
            no_newline=content == text and self._numbered,
        )
