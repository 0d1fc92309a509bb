"""Limits for long texts in a review: it shows their start and end, in bounded time and memory.

Agents control the length of inputs. Padding before or after a command does not hide it, because the
start and the end are shown. Padding on both sides could hide it, so a row and a warning give the
size of the omitted part. Large texts are searched with `find` and `rfind`, never split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Generic, TypeVar

from agents.review.matching import LINE_STEPS, Steps

LINES = 5_000
CHARACTERS = 500_000
SPANS = 20_000
LINE_CHARACTERS = 100_000
"""A longer line is cut in the middle."""
COMPARED_CHARACTERS = 1_000_000
COMPARED_LINES = 10_000
"""Limits for each of two compared texts."""
WORD_STEPS = 300_000
"""Limit for all pairs of lines of one diff."""

Place = tuple[int, int]
"""A line: the offsets of its first character and of its end, without the line break."""
Numbered = TypeVar("Numbered", bound=tuple[int, object])


def end_share(size: int) -> int:
    """Return the part of `size` for the end. The start gets the rest."""
    return size // 4


@dataclass(slots=True)
class Work:
    """The remaining budget for comparisons in all diffs of one review."""

    characters: int = 2 * COMPARED_CHARACTERS
    lines: int = 2 * COMPARED_LINES
    line_steps: Steps = field(default_factory=lambda: Steps(LINE_STEPS))
    word_steps: Steps = field(default_factory=lambda: Steps(WORD_STEPS))

    def may_compare(self, old: str, new: str) -> bool:
        """Return whether two texts may be compared, and if so, subtract them from the budget.

        Returns False if a text has too many characters or lines, or if earlier comparisons have
        used too much of the budget.
        """
        if max(len(old), len(new)) > min(self.characters, COMPARED_CHARACTERS):
            return False
        lines = (old.count("\n"), new.count("\n"))
        if max(lines) > COMPARED_LINES or sum(lines) > self.lines:
            return False
        self.characters -= len(old) + len(new)
        self.lines -= sum(lines)
        return True


@dataclass(frozen=True, slots=True)
class Kept(Generic[Numbered]):
    """An item to show, with the number of characters that fit."""

    item: Numbered
    characters: int


@dataclass(slots=True)
class Room:
    """The remaining room of a section, and the number of omitted lines and characters.

    `spans` are parts of lines with marks. Without room for spans, a line is one span without marks.
    """

    lines: int = LINES
    characters: int = CHARACTERS
    spans: int = SPANS
    work: Work = field(default_factory=Work)
    cut_lines: int = 0
    cut_characters: int = 0

    def take(self, characters: int, lines: int) -> bool:
        """Take room for a whole text. Return False if it does not fit."""
        if characters > self.characters or lines > self.lines:
            return False
        self.characters -= characters
        self.lines -= lines
        return True

    def part(self, count: int) -> Room:
        """Return the share of one of `count` texts. `give_back` returns the unused part."""
        share = Room(
            max(self.lines // count, 0),
            max(self.characters // count, 0),
            max(self.spans // count, 0),
            self.work,
        )
        self.lines -= share.lines
        self.characters -= share.characters
        self.spans -= share.spans
        return share

    def give_back(self, share: Room) -> None:
        self.lines += share.lines
        self.characters += share.characters
        self.spans += share.spans
        self.cut_lines += share.cut_lines
        self.cut_characters += share.cut_characters

    def ends(
        self,
        forward: Iterator[Numbered],
        backward: Iterator[Numbered],
        size: Callable[[Numbered], int],
    ) -> tuple[list[Kept[Numbered]], list[Kept[Numbered]]]:
        """Return the first and the last items that fit. Items are numbered, and each is one line.

        If there is any room, it includes at least a part of the first item.
        """
        end_lines, end_characters = end_share(self.lines), end_share(self.characters)
        self.lines -= end_lines
        self.characters -= end_characters
        head = list(self._fitting(forward, size))
        self.lines += end_lines
        self.characters += end_characters
        last = head[-1].item[0] if head else -1
        tail = list(self._fitting(takewhile(lambda item: item[0] > last, backward), size))
        return head, tail[::-1]

    def _fitting(
        self, items: Iterator[Numbered], size: Callable[[Numbered], int]
    ) -> Iterator[Kept[Numbered]]:
        is_first = True
        for item in items:
            wanted = min(size(item), LINE_CHARACTERS)
            if self.lines < 1 or (wanted > self.characters and not is_first):
                return
            is_first = False
            kept = min(wanted, self.characters)
            self.lines -= 1
            self.characters -= kept
            yield Kept(item, kept)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The displayed lines of a text, and the exact size of the omitted part between them."""

    head: list[Kept[Place]]
    tail: list[Kept[Place]]
    cut_lines: int
    cut_characters: int

    @property
    def lines(self) -> int:
        """Return the number of lines of the whole text."""
        return len(self.head) + self.cut_lines + len(self.tail)


def excerpt(text: str, room: Room, *, is_file: bool = False) -> Excerpt:
    """Return the first and the last lines of `text` that fit.

    Only line feeds end a line. The line after the last line feed counts even if it is empty, but
    not in a file.
    """
    end = len(text)
    if is_file and text.endswith("\n"):
        end -= 1
    elif is_file and not text:
        return Excerpt([], [], 0, 0)
    head, tail = room.ends(_forward(text, end), _backward(text, end), _length)
    start = head[-1].item[1] + 1 if head else 0
    until = tail[0].item[0] if tail else end + 1
    cut_characters = max(min(until, len(text)) - start, 0)
    cut_lines = text.count("\n", start, until - 1) + 1 if until > start else 0
    room.cut_lines += cut_lines
    room.cut_characters += cut_characters
    return Excerpt(head, tail, cut_lines, cut_characters)


def _length(place: Place) -> int:
    return place[1] - place[0]


def _forward(text: str, end: int) -> Iterator[Place]:
    start = 0
    while start <= end:
        until = text.find("\n", start, end)
        until = end if until < 0 else until
        yield start, until
        start = until + 1


def _backward(text: str, end: int) -> Iterator[Place]:
    until = end
    while until >= 0:
        start = text.rfind("\n", 0, until) + 1
        yield start, until
        until = start - 1


def left_out(lines: int, characters: int) -> str:
    """Return the size of an omitted part in words, for a row of a diff or a line."""
    counted = [f"{lines:,} {'line' if lines == 1 else 'lines'}"] if lines else []
    counted.append(f"{characters:,} {'character' if characters == 1 else 'characters'}")
    verb = "is" if not lines and characters == 1 else "are"
    return f"⋯ {' with '.join(counted)} {verb} not shown ⋯"
