"""Long texts and paths of pictures that a person pastes at the prompt: files of the next task.

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
    """A text, or the path of a picture, and its mark in the line."""

    mark: str
    content: str | Path


class Pastes:
    """The pasted contents of a session that no task has taken yet."""

    def __init__(self) -> None:
        self._known: list[Pasted] = []
        self._count = 0

    def insert(self, text: str) -> str:
        """Return what the line gets for a pasted text: the text, or the mark of a file."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        picture = picture_at(text)
        if picture is None and not _is_long(text):
            return text
        self._count += 1
        if picture is not None:
            mark = f"[picture {self._count}: {one_line(picture.name)}]"
            self._known.append(Pasted(mark, picture))
            return mark
        name = f"pasted-{token_hex(2)}-{self._count}.txt"
        mark = f"[{name}, {len(text.splitlines())} lines]"
        self._known.append(Pasted(mark, text[:MOST_CHARACTERS]))
        return mark

    def found(self, line: str) -> list[Pasted]:
        """Return the contents whose marks are in `line`."""
        return [each for each in self._known if each.mark in line]

    def forget(self) -> None:
        """Drop all contents: a task has taken them."""
        self._known.clear()


@contextmanager
def files(pastes: Sequence[Pasted]) -> Iterator[list[Path]]:
    """Yield the paths of the contents. Texts are in a private directory until the block ends."""
    with tempfile.TemporaryDirectory(prefix="vel-pasted-") as directory:
        paths = []
        for each in pastes:
            path = each.content
            if isinstance(path, str):
                path = Path(directory) / each.mark[1:].partition(",")[0]
                # An upload with control characters is refused, because it is no text.
                path.write_text(visible(str(each.content)), encoding="utf-8")
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
