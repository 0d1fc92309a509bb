"""Data classes of a review. All texts in them are safe to display.

Lines are lists of spans. The text of a span has code points instead of invisible characters, and
its marks give its meaning. Titles, names and facts are strings of one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from agents.hidden_text import visible
from agents.review.room import Room, end_share, left_out

SEVERITIES = ("note", "warning", "danger")
"""In order of increasing severity."""
NAME_CHARACTERS = 5_000
"""Maximum length of a name, a path or a fact."""
WHOLE_INPUT = (
    "The decision covers all of it. To see the whole input, use `vel approvals show ID --json` or "
    "`GET /api/v1/approvals/ID`."
)

Mark = Literal["changed", "hidden", "trailing", "note", "warning", "danger", "cut"]
RowKind = Literal["context", "added", "removed", "gap", "cut"]
DiffStatus = Literal["new", "changed", "deleted", "unchanged", "excerpt"]


class Finding(Protocol):
    """A finding of a scanner in the new content, from character `start` up to `end`."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def severity(self) -> str: ...

    @property
    def description(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The reason why no content for a comparison is available, as a sentence.

    This is different from None, which means that the file does not exist.
    """

    reason: str


NOT_LOOKED_UP = Unreadable("The current content of the file was not read.")


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a line.

    Marks: `changed` is a difference within a changed line; `trailing` is white space at the end;
    `hidden` are code points; severities are findings, described in `title`; `cut` is a text with
    the size of an omitted part.
    """

    text: str
    marks: tuple[Mark, ...] = ()
    title: str = ""

    @property
    def severity(self) -> str:
        """Return the highest severity of the findings, or ""."""
        return next((mark for mark in reversed(SEVERITIES) if mark in self.marks), "")


Line = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence about a section."""

    text: str
    severity: str = "note"


@dataclass(frozen=True, slots=True)
class DiffRow:
    """A line of a diff, or a `gap` of `folded` unchanged lines.

    A `cut` replaces `folded` lines, changed or not, that did not fit. Its only span is a text with
    the number of lines and characters.

    Line numbers start at 1. They are None on the side without the line, and in excerpts.
    `no_newline`: the file ends with this line, without a line break.
    """

    kind: RowKind
    old_line: int | None = None
    new_line: int | None = None
    spans: Line = ()
    no_newline: bool = False
    folded: int = 0

    @property
    def sign(self) -> str:
        return {"context": " ", "added": "+", "removed": "-", "gap": "⋯", "cut": "⋯"}[self.kind]


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A finding in words. `line` is its line in the new content, from 1.

    `line` is None if the new content is empty.
    """

    line: int | None
    severity: str
    description: str


@dataclass(frozen=True, slots=True)
class DiffSection:
    """A diff. `status` is `excerpt` if only the texts to replace are known, not the file."""

    path: str
    status: DiffStatus
    rows: tuple[DiffRow, ...]
    added: int
    removed: int
    findings: tuple[FoundLine, ...] = ()
    notes: tuple[Note, ...] = ()
    kind: Literal["diff"] = "diff"


@dataclass(frozen=True, slots=True)
class Fact:
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class CommandSection:
    """A command. `language` is bash or python; `facts` are directory, time limit and network."""

    language: str
    lines: tuple[Line, ...]
    facts: tuple[Fact, ...] = ()
    notes: tuple[Note, ...] = ()
    kind: Literal["command"] = "command"


@dataclass(frozen=True, slots=True)
class SqlSection:
    """An SQL statement. `lines` is the original, `formatted` the indented text if that is safe."""

    connection: str
    lines: tuple[Line, ...]
    formatted: tuple[Line, ...] = ()
    notes: tuple[Note, ...] = ()
    kind: Literal["sql"] = "sql"


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class FieldsSection:
    """Inputs by name: strings unchanged, other values as JSON."""

    title: str
    fields: tuple[Field, ...]
    notes: tuple[Note, ...] = ()
    kind: Literal["fields"] = "fields"


Section = DiffSection | CommandSection | SqlSection | FieldsSection


@dataclass(frozen=True, slots=True)
class Review:
    """A readable tool call. `title` is one line, such as "Edit notes.md"."""

    title: str
    sections: tuple[Section, ...]
    notes: tuple[Note, ...] = ()


def as_json(review: Review) -> dict[str, Any]:
    """Return the review as JSON data for `review.js`. All numbers are small."""
    return asdict(review)


def one_line(text: str, limit: int | None = None) -> str:
    """Return `text` in visible form on one line, cut after `limit` characters.

    Without a limit, a text that is too long for a name is cut in the middle.
    """
    if limit is None:
        missing = len(text) - NAME_CHARACTERS
        if missing <= 0:
            return _on_one_line(text)
        end = end_share(NAME_CHARACTERS)
        head, tail = text[: NAME_CHARACTERS - end], text[-end:]
        return f"{_on_one_line(head)} {left_out(0, missing)} {_on_one_line(tail)}"
    shown = _on_one_line(text[:limit])
    return shown if max(len(text), len(shown)) <= limit else f"{shown[: limit - 1]}…"


def _on_one_line(text: str) -> str:
    return visible(text).replace("\n", "⟨U+000A⟩")


def name_in(room: Room, text: str) -> str:
    """Return `one_line(text)` and count the omitted characters in `room`."""
    room.cut_characters += max(len(text) - NAME_CHARACTERS, 0)
    return one_line(text)


def cut_notes(room: Room, where: str = WHOLE_INPUT) -> tuple[Note, ...]:
    """Return a warning if something did not fit into `room`. `where` explains how to see it."""
    if not room.cut_lines and not room.cut_characters:
        return ()
    size = left_out(room.cut_lines, room.cut_characters).strip("⋯ ")
    return (Note(f"Too long to be shown in full: {size}. {where}", "warning"),)


def worst(findings: Sequence[Finding]) -> str:
    """Return the highest severity of the findings, or ""."""
    found = {severity_of(finding) for finding in findings}
    return next((severity for severity in reversed(SEVERITIES) if severity in found), "")


def severity_of(finding: Finding) -> Literal["note", "warning", "danger"]:
    """Return the severity of a finding. Unknown severities count as danger."""
    match finding.severity:
        case "note":
            return "note"
        case "warning":
            return "warning"
        case _:
            return "danger"
