"""A review as text for a terminal.

Each line from an agent starts with a sign or a bar, so it cannot look like a heading or a note.
Invisible characters are already replaced by code points.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agents.review.parts import (
    CommandSection,
    DiffRow,
    DiffSection,
    Field,
    FieldsSection,
    Line,
    Note,
    Review,
    Section,
    Span,
    SqlSection,
)

BAR = "│ "
_RESET = "\x1b[0m"
_COLORS = {"added": "32", "removed": "31", "gap": "2", "context": ""}
_MARKS = {"changed": "1", "trailing": "7", "hidden": "7;35", "note": "4", "warning": "7;33"}
_MARKS |= {"danger": "7;31", "cut": "7;33"}
_STATUS = {
    "new": "new file",
    "changed": "changed",
    "deleted": "deleted",
    "unchanged": "unchanged",
    "excerpt": "texts only",
}


def as_text(review: Review, color: bool = False) -> str:
    """Return the review as lines. The only control characters are those of `color`."""
    lines = [_styled(review.title, "1", color), *_notes(review.notes, color)]
    for section in review.sections:
        lines += ["", *_section(section, color)]
    return "".join(f"{line}\n" for line in lines)


def _section(section: Section, color: bool) -> Iterator[str]:
    match section:
        case DiffSection():
            yield (
                f"{section.path} ({_STATUS[section.status]}, "
                f"+{section.added} −{section.removed} lines)"
            )
            yield from _notes(section.notes, color)
            yield from _diff(section, color)
        case CommandSection():
            for fact in section.facts:
                yield f"{fact.name}: {fact.value}"
            yield from _notes(section.notes, color)
            yield from _barred(section.lines, color)
        case SqlSection():
            if section.connection:
                yield f"Database: {section.connection}"
            yield from _notes(section.notes, color)
            if section.formatted:
                yield from _barred(section.formatted, color)
                yield "As written:"
            yield from _barred(section.lines, color)
        case FieldsSection():
            yield f"{section.title}:"
            yield from _notes(section.notes, color)
            for field in section.fields:
                yield from _field(field, color)


def _field(field: Field, color: bool) -> Iterator[str]:
    yield f"{field.name}:"
    yield from _barred(field.lines, color)


def _diff(section: DiffSection, color: bool) -> Iterator[str]:
    last = max((max(row.old_line or 0, row.new_line or 0) for row in section.rows), default=0)
    width = len(str(last)) if last else 0
    for found in section.findings:
        where = "" if found.line is None else f"line {found.line}: "
        yield _styled(f"! {found.severity}: {where}{found.description}", "1", color)
    for row in section.rows:
        yield _row(row, width, color)


def _row(row: DiffRow, width: int, color: bool) -> str:
    if row.kind == "cut":
        return _styled("".join(span.text for span in row.spans), _MARKS["cut"], color)
    if row.kind == "gap":
        plural = "line" if row.folded == 1 else "lines"
        return _styled(f"⋯ {row.folded} unchanged {plural}", _COLORS["gap"], color)
    numbers = ""
    if width:
        numbers = f"{row.old_line or '':>{width}} {row.new_line or '':>{width}} "
    base = _COLORS[row.kind]
    text = "".join(_span(span, base, color) for span in row.spans)
    end = _styled(" ⟨no line break at the end⟩", "2", color) if row.no_newline else ""
    if not color and any("trailing" in span.marks for span in row.spans):
        end = f" ⟨white space at the end⟩{end}"
    return f"{numbers}{_styled(f'{row.sign} ', base, color)}{text}{end}"


def _barred(lines: Iterable[Line], color: bool) -> Iterator[str]:
    for line in lines:
        # Agents cannot write a line without the bar.
        is_cut = len(line) == 1 and "cut" in line[0].marks
        yield ("" if is_cut else BAR) + "".join(_span(span, "", color) for span in line)


def _span(span: Span, base: str, color: bool) -> str:
    codes = [base, *(_MARKS[mark] for mark in span.marks)]
    return _styled(span.text, ";".join(code for code in codes if code), color)


def _notes(notes: Iterable[Note], color: bool) -> Iterator[str]:
    for note in notes:
        text = (
            note.text if note.severity == "note" else f"{note.severity.capitalize()}: {note.text}"
        )
        yield _styled(text, "" if note.severity == "note" else "1", color)


def _styled(text: str, code: str, color: bool) -> str:
    return f"\x1b[{code}m{text}{_RESET}" if color and code else text
