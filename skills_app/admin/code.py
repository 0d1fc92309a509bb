"""Show a file of a skill on a page, exactly, and highlighted if that is quick.

The author of a file may want to mislead its reader or to hang the page. Therefore, invisible
characters appear as code points, the page reports any cut, and a process with a time limit does the
highlighting.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agents.review.spans import line_of

MAX_CHARACTERS = 400_000
"""The maximum number of characters of a file on a page. The page links to the rest."""
MAX_LINES = 5_000
HIGHLIGHT_CHARACTERS = 200_000
LONGEST_LINE = 5_000
"""A file with a longer line is data or generated code, and is not highlighted."""
HIGHLIGHT_SECONDS = 2.0
_LEXER = Path(__file__).with_name("lexer.py")

_BY_SUFFIX = {
    ".py": "python",
    ".sh": "bash",
    ".bash": "bash",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "jsx",
    ".ts": "typescript",
    ".tsx": "tsx",
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".toml": "toml",
    ".ini": "ini",
    ".cfg": "ini",
    ".md": "markdown",
    ".html": "html",
    ".xml": "xml",
    ".svg": "xml",
    ".xsd": "xml",
    ".css": "css",
    ".sql": "sql",
    ".rb": "ruby",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".c": "c",
    ".h": "c",
    ".cpp": "cpp",
    ".pl": "perl",
    ".php": "php",
    ".lua": "lua",
    ".r": "r",
    ".ps1": "powershell",
    ".tex": "latex",
    ".diff": "diff",
}
_BY_INTERPRETER = {
    "python": "python",
    "python3": "python",
    "sh": "bash",
    "bash": "bash",
    "zsh": "bash",
    "node": "javascript",
    "ruby": "ruby",
    "perl": "perl",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line. `css` has class names, which never come from the file."""

    text: str
    css: str = ""


@dataclass(frozen=True, slots=True)
class ShownCode:
    """A file as a page shows it.

    `lines` count from 1. `cut` is the number of characters that are omitted at the end. `language`
    is "" without highlighting.
    """

    lines: tuple[tuple[Piece, ...], ...]
    language: str = ""
    cut: int = 0
    has_hidden: bool = False


def shown_code(path: str, text: str, *, seconds: float = HIGHLIGHT_SECONDS) -> ShownCode:
    """Return `text`, the content of the file `path`, as lines of pieces."""
    kept = _beginning(text)
    language = language_of(path, kept)
    spans = _spans(language, kept, seconds) if language else None
    pieces = list(_pieces(kept, spans or [(len(kept), "")]))
    return ShownCode(
        tuple(_lines(pieces)),
        language if spans else "",
        len(text) - len(kept),
        any("mark-hidden" in piece.css for piece in pieces),
    )


def language_of(path: str, text: str) -> str:
    """Return the lexer for a file, by its name or its first line; "" if there is none."""
    found = _BY_SUFFIX.get(PurePosixPath(path).suffix.lower(), "")
    if found or not text.startswith("#!"):
        return found
    words = text[:200].split("\n", 1)[0].replace("/", " ").split()
    return next((_BY_INTERPRETER[word] for word in words if word in _BY_INTERPRETER), "")


def _beginning(text: str) -> str:
    kept = text[:MAX_CHARACTERS]
    lines = kept.split("\n", MAX_LINES)
    return "\n".join(lines[:MAX_LINES]) if len(lines) > MAX_LINES else kept


def _spans(language: str, text: str, seconds: float) -> list[tuple[int, str]] | None:
    """Return (length, class) of each part of `text`; None for too long texts and lexer errors."""
    if len(text) > HIGHLIGHT_CHARACTERS or any(
        len(line) > LONGEST_LINE for line in text.split("\n")
    ):
        return None
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(_LEXER)],
            input=f"{language}\n{text}".encode(),
            capture_output=True,
            timeout=seconds,
            check=True,
        )
        spans = [(int(length), str(css)) for length, css in json.loads(done.stdout)]
    except (subprocess.SubprocessError, UnicodeEncodeError, ValueError):
        return None
    return spans if sum(length for length, _ in spans) == len(text) else None


def _pieces(text: str, spans: Iterable[tuple[int, str]]) -> Iterator[Piece]:
    """Yield the pieces of `text`. A line feed is a separate piece."""
    at = 0
    for length, css in spans:
        for number, line in enumerate(text[at : at + length].split("\n")):
            if number:
                yield Piece("\n")
            for span in line_of(line):
                hidden = "mark mark-hidden" if "hidden" in span.marks else ""
                word = f"hl-{css}" if css else ""
                yield Piece(span.text, " ".join(filter(None, [word, hidden])))
        at += length


def _lines(pieces: Sequence[Piece]) -> Iterator[tuple[Piece, ...]]:
    line: list[Piece] = []
    for piece in pieces:
        if piece.text == "\n":
            yield tuple(line)
            line = []
        else:
            line.append(piece)
    yield tuple(line)
