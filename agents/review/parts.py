"""What a reading consists of. Every text in it can be shown as it is.

Lines are lists of spans: in a span's text what cannot be seen is written as code points, and its
marks say what is special about it. Titles, names and facts are plain strings of one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from agents.hidden_text import visible
from agents.review.room import Room, end_share, left_out

SEVERITIES = ("note", "warning", "danger")
"""From the lightest to the gravest."""
NAME_CHARACTERS = 5_000
"""Of a name, a path or a fact."""
WHOLE_INPUT = (
    "The decision covers all of it. To see the whole input, use `vel approvals show ID --json` or "
    "`GET /api/v1/approvals/ID`."
)

Mark = Literal["changed", "hidden", "trailing", "note", "warning", "danger", "cut"]
RowKind = Literal["context", "added", "removed", "gap", "cut"]
DiffStatus = Literal["new", "changed", "deleted", "unchanged", "excerpt"]


class Finding(Protocol):
    """What a scanner found in the new content, from character `start` up to `end`."""

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
    """Why there is no content to compare with, as a sentence. Not the same as no file."""

    reason: str


NOT_LOOKED_UP = Unreadable("What the file holds now was not looked up.")


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line. `changed` is what differs within a changed line; `trailing` is white
    space at a line's end; `hidden` are code points; severities are findings, told in `title`;
    `cut` says in words how much is not shown in its place.
    """

    text: str
    marks: tuple[Mark, ...] = ()
    title: str = ""

    @property
    def severity(self) -> str:
        """The gravest finding here, or empty."""
        return next((mark for mark in reversed(SEVERITIES) if mark in self.marks), "")


Line = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence about a section."""

    text: str
    severity: str = "note"


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One line of a diff, or as a `gap` the `folded` unchanged lines that are not shown.

    A `cut` stands for `folded` lines, changed or not, for which there was no room; its only span
    says how many lines and characters they are.
    Line numbers count from 1, and are None on the side where the line is not, and in an excerpt.
    `no_newline`: the file ends in this line, without a line break.
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
    """A finding in words; `line` counts in the new content, None where that has no lines."""

    line: int | None
    severity: str
    description: str


@dataclass(frozen=True, slots=True)
class DiffSection:
    """`status` is `excerpt` where only the texts to replace are known, not the file."""

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
    """`language` is bash or python; `facts` are the directory, the time limit, the network."""

    language: str
    lines: tuple[Line, ...]
    facts: tuple[Fact, ...] = ()
    notes: tuple[Note, ...] = ()
    kind: Literal["command"] = "command"


@dataclass(frozen=True, slots=True)
class SqlSection:
    """`lines` are the statement as written; `formatted` the same laid out, where that is safe."""

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
    """Inputs by name: strings verbatim, anything else as JSON."""

    title: str
    fields: tuple[Field, ...]
    notes: tuple[Note, ...] = ()
    kind: Literal["fields"] = "fields"


Section = DiffSection | CommandSection | SqlSection | FieldsSection


@dataclass(frozen=True, slots=True)
class Review:
    """`title` is one line: "Edit notes.md"."""

    title: str
    sections: tuple[Section, ...]
    notes: tuple[Note, ...] = ()


def as_json(review: Review) -> dict[str, Any]:
    """Dicts, lists, strings, small numbers, booleans and None, as `review.js` renders them."""
    return asdict(review)


def one_line(text: str, limit: int | None = None) -> str:
    """`text` for a title or a fact: visible, on one line, cut after `limit` characters.

    Without a limit it is cut in its middle, if it is longer than a name can be.
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
    """`one_line(text)`; the room counts what it leaves out."""
    room.cut_characters += max(len(text) - NAME_CHARACTERS, 0)
    return one_line(text)


def cut_notes(room: Room, where: str = WHOLE_INPUT) -> tuple[Note, ...]:
    """A warning if something did not fit into `room`; `where` says how to see the whole."""
    if not room.cut_lines and not room.cut_characters:
        return ()
    size = left_out(room.cut_lines, room.cut_characters).strip("⋯ ")
    return (Note(f"Too long to be shown in full: {size}. {where}", "warning"),)


def worst(findings: Sequence[Finding]) -> str:
    """The gravest severity among them, or empty."""
    found = {severity_of(finding) for finding in findings}
    return next((severity for severity in reversed(SEVERITIES) if severity in found), "")


def severity_of(finding: Finding) -> Literal["note", "warning", "danger"]:
    """A severity that nobody here knows is the gravest."""
    match finding.severity:
        case "note":
            return "note"
        case "warning":
            return "warning"
        case _:
            return "danger"
