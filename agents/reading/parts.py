"""What a reading consists of. Every text in it can be shown as it is.

Lines are lists of spans: in a span's text what cannot be seen is written as code points, and its
marks say what is special about it. Titles, names and facts are plain strings of one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from agents.hidden_text import visible

SEVERITIES = ("note", "warning", "danger")
"""From the lightest to the gravest."""

Mark = Literal["changed", "hidden", "trailing", "note", "warning", "danger"]
RowKind = Literal["context", "added", "removed", "gap"]
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
    space at a line's end; `hidden` are code points; severities are findings, told in `title`.
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
        return {"context": " ", "added": "+", "removed": "-", "gap": "⋯"}[self.kind]


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
class Reading:
    """`title` is one line: "Edit notes.md"."""

    title: str
    sections: tuple[Section, ...]
    notes: tuple[Note, ...] = ()


def as_json(reading: Reading) -> dict[str, Any]:
    """Dicts, lists, strings, small numbers, booleans and None, as `reading.js` renders them."""
    return asdict(reading)


def one_line(text: str, limit: int | None = None) -> str:
    """`text` for a title or a fact: visible, on one line, cut after `limit` characters."""
    shown = visible(text).replace("\n", "⟨U+000A⟩")
    return shown if limit is None or len(shown) <= limit else f"{shown[: limit - 1]}…"


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
