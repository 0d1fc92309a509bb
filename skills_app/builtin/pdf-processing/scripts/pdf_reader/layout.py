"""Build lines and table columns from characters with positions."""

from __future__ import annotations

from dataclasses import dataclass

from pdf_reader.content import Character

WORD_GAP = 0.16
"""The width of a gap that is a space, relative to the font size.

Gaps by kerning are smaller, gaps in justified text larger.
"""
CELL_GAP = 1.0
"""The width of a gap that separates cells, relative to the font size."""
LINE_STEP = 0.5
"""The vertical distance that starts another line, relative to the font size."""
PARAGRAPH_STEP = 1.75


@dataclass(frozen=True)
class Segment:
    """Text without a large gap, from `x` to `end` at height `y`."""

    text: str
    x: float
    end: float
    y: float
    size: float


def text_in_drawing_order(characters: list[Character]) -> str:
    """Return the text in the order of the file, for example one column after another."""
    lines: list[str] = []
    line: list[str] = []
    last: Character | None = None
    for character in characters:
        if last is not None:
            size = max(last.size, character.size, 0.1)
            step, gap = last.y - character.y, character.x - last.end
            if character.turned != last.turned or abs(step) > LINE_STEP * size or gap < -2 * size:
                lines.append("".join(line).rstrip())
                line = []
                if character.turned != last.turned or abs(step) > PARAGRAPH_STEP * size:
                    lines.append("")
            elif gap > WORD_GAP * size and " " not in (character.text, *line[-1:]):
                line.append(" ")
        line.append(character.text)
        last = character
    lines.append("".join(line).rstrip())
    return tidy(lines)


def tidy(lines: list[str]) -> str:
    """Return `lines` as text, without repeated empty lines, control characters and soft hyphens."""
    cleaned: list[str] = []
    for line in "\n".join(lines).split("\n"):
        line = "".join(
            each for each in line if each == "\t" or (ord(each) >= 32 and each != "\u00ad")
        ).replace("\u00a0", " ")
        if line.strip() or (cleaned and cleaned[-1]):
            cleaned.append(line.rstrip())
    return "\n".join(cleaned).strip("\n")


def segments_by_line(characters: list[Character]) -> list[list[Segment]]:
    """Return the upright text as rows from top to bottom, each split at large gaps."""
    upright = sorted(
        (each for each in characters if each.turned == 0), key=lambda each: (-each.y, each.x)
    )
    rows: list[list[Character]] = []
    for character in upright:
        if rows:
            first = rows[-1][0]
            if abs(first.y - character.y) <= LINE_STEP * max(0.1, min(first.size, character.size)):
                rows[-1].append(character)
                continue
        rows.append([character])
    return [found for row in rows if (found := _cut(sorted(row, key=lambda each: each.x)))]


def _cut(row: list[Character]) -> list[Segment]:
    segments: list[Segment] = []
    current: list[Character] = []
    words: list[str] = []

    def finish() -> None:
        text = " ".join("".join(words).split())
        if text:
            shown = [each for each in current if each.text.strip()]
            segments.append(Segment(text, shown[0].x, shown[-1].end, shown[0].y, shown[0].size))

    last: Character | None = None
    for character in row:
        if not character.text.strip():
            words.append(" ")
            continue
        if last is not None:
            gap, size = character.x - last.end, max(last.size, 0.1)
            if gap > CELL_GAP * size:
                finish()
                current, words = [], []
            elif gap > WORD_GAP * size:
                words.append(" ")
        current.append(character)
        words.append(character.text)
        last = character
    finish()
    return segments


def text_in_place(characters: list[Character]) -> str:
    """Return the upright text in the layout of the page, with spaces for gaps."""
    rows = segments_by_line(characters)
    everything = [segment for row in rows for segment in row]
    if not everything:
        return ""
    left = min(segment.x for segment in everything)
    letters = sum(len(segment.text) for segment in everything)
    width = sum(segment.end - segment.x for segment in everything) / max(1, letters)
    width = width or 1.0
    lines: list[str] = []
    above: Segment | None = None
    for row in rows:
        if above and above.y - row[0].y > PARAGRAPH_STEP * max(above.size, row[0].size):
            lines.append("")
        line = ""
        for segment in row:
            column = min(400, round((segment.x - left) / width))
            line += " " * max(2 if line else 0, column - len(line)) + segment.text
        lines.append(line)
        above = row[0]
    return tidy(lines)
