"""The difference of two texts as rows. Unchanged parts are folded.

If a diff has too many rows, the first and the last ones are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.review.matching import Block, Steps, changed_blocks
from agents.review.parts import (
    WHOLE_INPUT,
    DiffRow,
    DiffSection,
    DiffStatus,
    Finding,
    FoundLine,
    Mark,
    Note,
    RowKind,
    cut_notes,
    name_in,
    one_line,
    severity_of,
)
from agents.review.room import Kept, Place, Room
from agents.review.room import excerpt as excerpt_of
from agents.review.spans import Region, cut_span, kept_line

CONTEXT = 3
FINDINGS = 1_000
"""Further findings are counted, but not listed."""
_SHORTEST_GAP = 2
_NOT_COMPARED = "The new content is too long to be compared: it is shown without what it replaces."


def diff_section(
    path: str,
    before: str | None,
    after: str | None,
    *,
    findings: Sequence[Finding] = (),
    notes: Sequence[Note] = (),
    excerpt: bool = False,
    room: Room | None = None,
    where: str = WHOLE_INPUT,
) -> DiffSection:
    """Return the diff of the file `path`. None means that the file does not exist.

    `findings` are positions in `after`, as offsets in characters. With `excerpt`, the texts are
    only the parts to replace, not the file: rows have no line numbers, and nothing is folded.

    Texts that are too long to compare are listed, the new one after the old one. For a replaced
    file, only the new one is listed. `where` is a sentence about how to see omitted parts.
    """
    room = room or Room()
    status: DiffStatus = "excerpt" if excerpt else _status(before, after)
    shown_path = name_in(room, path)
    old, new = before or "", after or ""
    marked = _Marked(new, findings)
    rows: tuple[DiffRow, ...]
    if status == "unchanged":
        notes = [*notes, Note("Nothing would change: the content is the same.")]
    if room.work.may_compare(old, new):
        compared = _Compared(_lines(old), _lines(new), marked, room, numbered=not excerpt)
        rows, removed, added = compared.rows(), compared.removed, compared.added
    elif status == "unchanged":
        rows, removed, added = (), 0, 0
    else:
        is_replaced = status == "changed"
        if is_replaced:
            notes = [*notes, Note(_NOT_COMPARED, "warning")]
            status = "excerpt"
        share = room.part(4 if old and new else 1)
        first, removed = ((), 0) if is_replaced else _listed("removed", old, _Marked("", ()), share)
        room.give_back(share)
        last, added = _listed("added", new, marked, room, numbered=not excerpt)
        rows = (*first, *last)
    found = marked.found[:FINDINGS]
    if len(marked.found) > FINDINGS:
        more = len(marked.found) - FINDINGS
        notes = [*notes, Note(f"{more:,} more marked places are not listed.", "warning")]
    return DiffSection(
        shown_path,
        status,
        rows,
        added=added,
        removed=removed,
        findings=found,
        notes=(*notes, *cut_notes(room, where)),
    )


def _status(before: str | None, after: str | None) -> DiffStatus:
    if before is None:
        return "unchanged" if after is None else "new"
    if after is None:
        return "deleted"
    return "unchanged" if before == after else "changed"


def _lines(text: str) -> list[str]:
    """Split a text into lines with line feeds, so that a missing one at the end is a difference."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


class _Marked:
    """Findings by the line of the new content, counted from 0."""

    def __init__(self, text: str, findings: Sequence[Finding]) -> None:
        self.regions: dict[int, list[Region]] = {}
        found = []
        line, at = 0, 0
        for finding in sorted(findings, key=lambda finding: finding.start):
            severity, title = severity_of(finding), one_line(finding.description)
            start = min(max(finding.start, 0), max(len(text) - 1, 0))
            end = min(max(finding.end, start + 1), len(text))
            line += text.count("\n", at, start)
            at = start
            found.append(FoundLine(line + 1 if text else None, severity, title))
            self._add(text, line, start, end, severity, title)
        self.found = tuple(found)

    def _add(self, text: str, line: int, start: int, end: int, mark: Mark, title: str) -> None:
        first = text.rfind("\n", 0, start) + 1
        while first < end:
            region = Region(max(start - first, 0), end - first, mark, title)
            self.regions.setdefault(line, []).append(region)
            first = text.find("\n", first) + 1 or len(text) + 1
            line += 1


def _listed(
    kind: RowKind, text: str, marked: _Marked, room: Room, *, numbered: bool = False
) -> tuple[tuple[DiffRow, ...], int]:
    """Return the rows of a text that is not compared, and its number of lines."""
    shown = excerpt_of(text, room, is_file=True)

    def row(number: int, kept: Kept[Place]) -> DiffRow:
        regions = marked.regions.get(number, ())
        line = kept_line(text, kept, room, regions, trailing=True)
        is_last = kept.item[1] == len(text)
        count = number + 1 if numbered else None
        old, new = (count, None) if kind == "removed" else (None, count)
        return DiffRow(kind, old, new, line, no_newline=is_last and numbered)

    rows = [row(number, kept) for number, kept in enumerate(shown.head)]
    if shown.cut_lines:
        rows.append(_cut(shown.cut_lines, shown.cut_characters))
    first = shown.lines - len(shown.tail)
    rows += [row(number, kept) for number, kept in enumerate(shown.tail, first)]
    return tuple(rows), shown.lines


def _cut(lines: int, characters: int) -> DiffRow:
    return DiffRow("cut", folded=lines, spans=(cut_span(lines, characters),))


@dataclass(frozen=True, slots=True)
class _Plan:
    """A planned row. `partner` is the corresponding line of the other text, or None."""

    kind: RowKind
    old: int | None
    new: int | None
    partner: int | None = None
    folded: int = 0


class _Compared:
    def __init__(
        self, old: list[str], new: list[str], marked: _Marked, room: Room, *, numbered: bool
    ) -> None:
        self._old, self._new = old, new
        self._marked = marked
        self._room = room
        self._numbered = numbered
        self._within: dict[int, list[Region]] = {}
        blocks = changed_blocks(old, new, room.work.line_steps)
        self._plans = list(self._planned(blocks))
        self.removed = sum(plan.kind == "removed" for plan in self._plans)
        self.added = sum(plan.kind == "added" for plan in self._plans)

    def rows(self) -> tuple[DiffRow, ...]:
        """Return all rows, or the first and the last ones that fit."""
        plans = self._plans
        forward = enumerate(plans)
        backward = ((number, plans[number]) for number in range(len(plans) - 1, -1, -1))
        head, tail = self._room.ends(forward, backward, lambda item: len(self._text(item[1])))
        rows = [self._row(kept.item[1], kept.characters) for kept in head]
        missing = plans[len(head) : len(plans) - len(tail)]
        if missing:
            lines = sum(plan.folded or 1 for plan in missing)
            characters = sum(map(self._size, missing))
            self._room.cut_lines += lines
            self._room.cut_characters += characters
            rows.append(_cut(lines, characters))
        return (*rows, *(self._row(kept.item[1], kept.characters) for kept in tail))

    def _planned(self, blocks: list[Block]) -> Iterator[_Plan]:
        old_at = new_at = 0
        for block in blocks:
            yield from self._same(old_at, new_at, block.new_start - new_at, before_change=True)
            pairs = min(block.old_end - block.old_start, block.new_end - block.new_start)
            shift = block.new_start - block.old_start
            for old in range(block.old_start, block.old_end):
                is_paired = old < block.old_start + pairs
                yield _Plan("removed", old, None, old + shift if is_paired else None)
            for new in range(block.new_start, block.new_end):
                is_paired = new < block.new_start + pairs
                yield _Plan("added", None, new, new - shift if is_paired else None)
            old_at, new_at = block.old_end, block.new_end
        yield from self._same(old_at, new_at, len(self._new) - new_at, before_change=False)

    def _same(self, old: int, new: int, count: int, *, before_change: bool) -> Iterator[_Plan]:
        """Yield unchanged lines, as context near a change or a finding, otherwise folded."""
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
                yield _Plan("context", old + at, new + at)
                at += 1
                continue
            until = shown.find(1, at)
            until = count if until < 0 else until
            if until - at < _SHORTEST_GAP:
                yield _Plan("context", old + at, new + at)
            else:
                yield _Plan("gap", old + at, new + at, folded=until - at)
            at = until

    def _changed_within(self, plan: _Plan) -> list[Region]:
        """Return the regions of the plan's line that differ from its partner.

        There are none without a partner, or if the lines have little in common.
        """
        if plan.partner is None:
            return []
        old = plan.old if plan.old is not None else plan.partner
        new = plan.new if plan.new is not None else plan.partner
        if plan.new is not None and old in self._within:
            return self._within.pop(old)
        removed, added = changed_within(
            self._old[old].removesuffix("\n"),
            self._new[new].removesuffix("\n"),
            self._room.work.word_steps,
        )
        if plan.new is not None:
            return added
        self._within[old] = added
        return removed

    def _text(self, plan: _Plan) -> str:
        """Return the line with its line feed, or "" for a gap."""
        if plan.kind == "gap":
            return ""
        return self._new[plan.new] if plan.new is not None else self._old[plan.old or 0]

    def _size(self, plan: _Plan) -> int:
        if plan.kind == "gap" and plan.new is not None:
            return sum(map(len, self._new[plan.new : plan.new + plan.folded]))
        return len(self._text(plan))

    def _row(self, plan: _Plan, characters: int) -> DiffRow:
        old = plan.old + 1 if plan.old is not None and self._numbered else None
        new = plan.new + 1 if plan.new is not None and self._numbered else None
        if plan.kind == "gap":
            return DiffRow("gap", old, new, folded=plan.folded)
        text = self._text(plan)
        content = text.removesuffix("\n")
        marked = self._marked.regions.get(plan.new, []) if plan.new is not None else []
        kept = Kept((0, len(content)), characters)
        # White space at the end of a line is marked only if it changes.
        trailing = plan.kind != "context"
        regions = [*self._changed_within(plan), *marked]
        line = kept_line(content, kept, self._room, regions, trailing=trailing)
        return DiffRow(
            plan.kind,
            old,
            new,
            line,
            no_newline=content == text and self._numbered,
        )


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
