"""Completion at the prompt: slash commands, and paths after `@`."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import nsmallest
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from agents.doors.cli.terminal import one_line

MOST_ENTRIES = 20_000
"""The most files and directories that are looked at, those near the top first."""
MOST_OFFERED = 100
SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".nox"}
    | {".mypy_cache", ".pytest_cache", ".ruff_cache"}
)
"""Directories that are not searched."""


class PromptCompleter(Completer):
    """Completes the names of slash commands, and paths below `directory` after `@`."""

    def __init__(self, directory: Callable[[], Path], commands: Mapping[str, str]) -> None:
        self._directory = directory
        self._commands = commands

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        word = before.rpartition("\n")[2].rpartition(" ")[2]
        if before == word and word.startswith("/"):
            for name, text in self._commands.items():
                if name.startswith(word):
                    yield Completion(name, -len(word), display_meta=text)
        elif word.startswith("@"):
            for path in found_paths(self._directory(), word[1:]):
                yield Completion(f"@{path}", -len(word))


def found_paths(directory: Path, word: str) -> list[str]:
    """Return the relative paths that have the characters of `word` in this order, the best first.

    Directories have a slash at the end. Paths with spaces or hidden characters are not offered.
    Links are not followed, so that all paths are below `directory`.
    """
    ranked = ((_rank(path, word.lower()), path) for path in _paths(directory))
    fitting = ((rank, path) for rank, path in ranked if rank is not None)
    return [path for _, path in nsmallest(MOST_OFFERED, fitting)]


def _rank(path: str, word: str) -> tuple[bool, int, int] | None:
    """Return a key that sorts paths, or None without a match.

    A match in the name comes before one across directories, and a short match before a long one.
    A regular expression such as `a.*b.*c` could take minutes for names that an agent has chosen.
    """
    text = path.lower()
    name = text.rfind("/", 0, len(text) - 1) + 1
    for start in dict.fromkeys((name, 0)):
        if (length := _length(text, word, start)) is not None:
            return start != name, length, len(path)
    return None


def _length(text: str, word: str, start: int) -> int | None:
    """Return the length of the part of `text` with the characters of `word`, or None."""
    if text.find(word, start) >= 0:
        return len(word)
    place = begin = text.find(word[0], start)
    for character in word[1:]:
        if place < 0:
            return None
        place = text.find(character, place + 1)
    return None if place < 0 else place + 1 - begin


def _paths(directory: Path) -> Iterator[str]:
    """Yield the paths below `directory`, breadth first, until `MOST_ENTRIES` were looked at."""
    folders = deque([""])
    seen = 0
    while folders:
        folder = folders.popleft()
        try:
            entries = os.scandir(directory / folder)
        except OSError:  # a directory that this account cannot read, or that is gone
            continue
        with entries:
            for entry in entries:
                if (seen := seen + 1) > MOST_ENTRIES:
                    return
                name = entry.name
                if " " in name or one_line(name, 1000) != name:
                    continue
                if not entry.is_dir(follow_symlinks=False):
                    yield folder + name
                elif name not in SKIPPED:
                    yield f"{folder}{name}/"
                    folders.append(f"{folder}{name}/")
