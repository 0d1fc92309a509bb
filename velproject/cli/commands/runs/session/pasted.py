"""Long texts and pictures that a person pastes at the prompt: files of the next task.

The line shows a mark such as `[pasted-3f2a-1.txt, 200 lines]`. Without its mark, a file is not
sent.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from urllib.parse import unquote

from agents.doors.cli.terminal import one_line, visible

LONG_CHARACTERS = 2_000
LONG_LINES = 20
MOST_CHARACTERS = 20_000_000
PICTURES = frozenset({".gif", ".jpeg", ".jpg", ".png", ".webp"})
_MOST_PATH = 4_096


@dataclass(frozen=True, slots=True)
class Pasted:
    """A text, a picture or its path, and its mark in the line."""

    mark: str
    content: str | bytes | Path
    name: str = ""
    """The name of the file, unless `content` is a path."""


class Pastes:
    """The pasted contents of a session that no task has taken yet."""

    def __init__(self) -> None:
        self._known: list[Pasted] = []
        self._count = 0

    def insert(self, text: str) -> str:
        """Return what the line gets for a pasted text: the text, or the mark of a file."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        picture = picture_at(text)
        if picture is None:
            return self.insert_text(text)
        self._count += 1
        return self._add(f"[picture {self._count}: {one_line(picture.name)}]", picture)

    def insert_text(self, text: str) -> str:
        """Return what the line gets for a text that is no path: the text, or the mark of a file."""
        if not _is_long(text):
            return text
        name = self._new_name("pasted", ".txt")
        mark = f"[{name}, {len(text.splitlines())} lines]"
        return self._add(mark, text[:MOST_CHARACTERS], name)

    def insert_picture(self, suffix: str, data: bytes) -> str:
        """Return the mark of a picture from the clipboard."""
        name = self._new_name("clipboard", suffix)
        return self._add(f"[picture {self._count}: {name}]", data, name)

    def _new_name(self, kind: str, suffix: str) -> str:
        self._count += 1
        return f"{kind}-{token_hex(2)}-{self._count}{suffix}"

    def _add(self, mark: str, content: str | bytes | Path, name: str = "") -> str:
        self._known.append(Pasted(mark, content, name))
        return mark

    def found(self, line: str) -> list[Pasted]:
        """Return the contents whose marks are in `line`."""
        return [each for each in self._known if each.mark in line]

    def forget(self) -> None:
        """Drop all contents: a task has taken them."""
        self._known.clear()


@contextmanager
def files(pastes: Sequence[Pasted]) -> Iterator[list[Path]]:
    """Yield the paths of the contents. Others are in a private directory until the block ends."""
    with tempfile.TemporaryDirectory(prefix="vel-pasted-") as directory:
        paths = []
        for each in pastes:
            content, path = each.content, Path(directory) / each.name
            if isinstance(content, str):
                # An upload with control characters is refused, because it is no text.
                path.write_text(visible(content), encoding="utf-8")
            elif isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path = content
            paths.append(path)
        yield paths


def picture_at(text: str) -> Path | None:
    """Return the absolute path of an existing picture if `text` is only its path or file URL.

    Terminals quote the path of a file that is dropped on them.
    """
    line = text.strip()
    if not line or "\n" in line or len(line) > _MOST_PATH:
        return None
    if line.startswith("file:///"):
        line = unquote(line.removeprefix("file://"))
    elif re.match(r"['\"~/]", line):
        try:
            words = shlex.split(line)
        except ValueError:
            return None
        line = words[0] if len(words) == 1 else line
    try:
        path = Path(line).expanduser()
        is_picture = path.is_absolute() and path.suffix.lower() in PICTURES and path.is_file()
    except (OSError, RuntimeError, ValueError):  # no such home, a name that is too long, or a NUL
        return None
    return path if is_picture else None


def _is_long(text: str) -> bool:
    return len(text) > LONG_CHARACTERS or text.count("\n") >= LONG_LINES
