"""Parts of pages about a package: a file, the difference of two versions, findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from agents.hidden_text import visible
from agents.review.marked_text import MarkedText, marked_text
from agents.review.parts import DiffSection, DiffStatus, Note, Review, one_line
from skills_app.models import SkillVersion
from skills_app.queries.comparison import FileChange, compare
from skills_app.queries.packages import PackageEntry, as_text

SHOWN_CHARACTERS = 400_000
LINE_CHARACTERS = 5_000
"""The most that a page shows of one file, and of one line: the rest is in the download."""
COMPARED_FILES = 100
_STATUS: dict[str, DiffStatus] = {"added": "new", "removed": "deleted", "changed": "changed"}


@dataclass(frozen=True, slots=True)
class LineFinding:
    """A finding of the scan at the characters of its line."""

    start: int
    end: int
    severity: str
    description: str


@dataclass(frozen=True, slots=True)
class ShownFile:
    """`text` is None for a binary file; `cut` means that the page shows only a part."""

    entry: PackageEntry
    text: MarkedText | None
    cut: bool


def shown_file(entry: PackageEntry, data: bytes, findings: Sequence[dict[str, Any]]) -> ShownFile:
    """Return the file with its findings, selected from those of the version, as stored."""
    text = as_text(data)
    if text is None:
        return ShownFile(entry, None, False)
    lines = text[:SHOWN_CHARACTERS].split("\n")
    cut = len(text) > SHOWN_CHARACTERS or any(len(line) > LINE_CHARACTERS for line in lines)
    lines = [_cut_line(line) for line in lines]
    marks = _of_lines(lines, [held for held in findings if held["path"] == entry.path])
    displayed = marked_text("\n".join(lines), marks)
    return ShownFile(entry, displayed, cut or displayed.left_out > 0)


def _cut_line(line: str) -> str:
    if len(line) <= LINE_CHARACTERS:
        return line
    return f"{line[:LINE_CHARACTERS]} … {len(line) - LINE_CHARACTERS:,} more characters"


def _of_lines(lines: Sequence[str], findings: Iterable[dict[str, Any]]) -> list[LineFinding]:
    """Return findings in shown lines; those of the file as a whole are listed elsewhere."""
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    return [
        LineFinding(
            starts[held["line"] - 1],
            starts[held["line"]] - 1,
            held["severity"],
            held["message"],
        )
        for held in findings
        if 0 < held["line"] <= len(lines)
    ]


def comparison(old: SkillVersion, new: SkillVersion) -> Review:
    """Return the changes from `old` to `new`. A file without a comparison gives the reason."""
    compared = compare(old, new)
    sections = tuple(_section(change) for change in compared.files[:COMPARED_FILES])
    notes = []
    if not compared.files:
        notes.append(Note("All files are the same, byte for byte."))
    if len(compared.files) > COMPARED_FILES:
        more = len(compared.files) - COMPARED_FILES
        notes.append(Note(f"{more} more changed files are not shown here.", "warning"))
    return Review(f"Version {old.number} → version {new.number}", sections, tuple(notes))


def _section(change: FileChange) -> DiffSection:
    notes = [Note(f"The file {change.mode}.", "warning")] if change.mode else []
    if change.review is not None:
        section = change.review.sections[0]
        assert isinstance(section, DiffSection)
        return replace(section, notes=(*section.notes, *notes))
    if change.why:
        notes.append(Note(f"Not laid side by side: {change.why}.", "warning"))
    sides = (change.before, change.after)
    notes.append(Note(" → ".join(f"{side.size_bytes:,} bytes" for side in sides if side)))
    status = _STATUS[change.status]
    return DiffSection(one_line(change.path), status, (), 0, 0, (), tuple(notes))


def facts_of(version: SkillVersion) -> list[tuple[str, str]]:
    """Return the head's fields except name and description, as printable (label, text)."""
    head = version.fields
    tools = head.allowed_tools
    facts = [
        ("Title", head.title),
        ("Version", head.version),
        ("Author", head.author),
        ("Licence", head.license),
        ("Compatibility", head.compatibility),
        ("Tags", ", ".join(head.tags)),
        ("Triggers", ", ".join(head.triggers)),
        ("Requires", ", ".join(head.requires)),
        ("Narrows tools to", "none" if tools == () else ", ".join(tools or ())),
        ("Needs tools", ", ".join(head.tools_required)),
        *head.metadata.items(),
        *head.extra.items(),
    ]
    return [(visible(name), visible(value)) for name, value in facts if value]
