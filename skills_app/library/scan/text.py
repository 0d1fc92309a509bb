"""Show bytes of a file as lines and excerpts."""

from __future__ import annotations

import unicodedata

from skills_app.library.scan.finding import MAX_EXCERPT, ScanFinding, Severity
from text_scanner.characters import INVISIBLE


def shown(text: str) -> str:
    """Return `text` on one line, with invisible characters as code points, such as ⟨U+202E⟩.

    A text of more than `MAX_EXCERPT` characters is cut.
    """
    head = text[: MAX_EXCERPT * 4].replace("\r", " ").replace("\n", " ⏎ ").replace("\t", " ")
    line = " ".join(head.split(" ")).strip()
    cut = line[:MAX_EXCERPT]
    seen = cut if cut.isascii() and cut.isprintable() else "".join(map(_shown, cut))
    return seen + ("…" if len(line) > MAX_EXCERPT else "")


def _shown(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") or INVISIBLE.fullmatch(character):
        return f"⟨U+{ord(character):04X}⟩"
    return character


def line_at(data: bytes, offset: int) -> int:
    """Return the line number of the byte at `offset`, from 1."""
    return data.count(b"\n", 0, offset) + 1


def excerpt(data: bytes, start: int, end: int) -> str:
    """Return the text of data[start:end] for people, from the start of its line if that is near."""
    begin = max(data.rfind(b"\n", 0, start) + 1, start - 60)
    stop = data.find(b"\n", end)
    stop = min(len(data) if stop < 0 else stop, max(end, begin + MAX_EXCERPT))
    return shown(data[begin : min(stop, begin + 4 * MAX_EXCERPT)].decode("utf-8", "replace"))


def at(
    severity: Severity, code: str, path: str, data: bytes, span: tuple[int, int], message: str
) -> ScanFinding:
    """Return a finding for the bytes `span` (start, end) of `data`."""
    return ScanFinding(severity, code, path, line_at(data, span[0]), message, excerpt(data, *span))
