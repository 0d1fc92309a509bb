"""Limits of file operations: the most work that a hostile tree can cause on the host."""

from __future__ import annotations

import time
from dataclasses import dataclass

MAX_DEPTH = 100
"""The maximum depth of a walk, in directories."""


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Limits of the file tools: sizes in bytes, times in seconds, lengths in characters."""

    read_output: int = 50_000
    """The size of the content that one read_file returns."""
    line: int = 2_000
    """The length of one line in read_file; the rest of a longer line is omitted."""
    scan: int = 64 * 1024**2
    """The size of the part of a file that read_file and content_hash read."""
    edit: int = 10 * 1024**2
    """The largest file that edit_file and write_file accept."""
    directory: int = 10_000
    """The number of entries that ls and walks read from one directory."""
    output: int = 100_000
    """The size of the names and lines that one ls, glob or grep returns."""
    own_result: int = 1_000_000
    """The number of characters that one tool of a program's backend returns."""
    listing: int = 1_000
    """The number of entries that one ls returns."""
    glob_matches: int = 1_000
    grep_matches: int = 100
    grep_total: int = 1_000
    """The number of matches at which grep stops counting."""
    grep_excerpt: int = 500
    """The length of one matching line in grep."""
    search_seconds: float = 10.0
    search_entries: int = 100_000
    search_bytes: int = 256 * 1024**2


class WalkLimit:
    """The remaining limits of one search. `cut` is the reason for incomplete results, or empty."""

    def __init__(self, limits: FileLimits) -> None:
        self._entries = limits.search_entries
        self._bytes = limits.search_bytes
        self._deadline = time.monotonic() + limits.search_seconds
        self.cut: str | None = None

    def cut_short(self, reason: str) -> None:
        self.cut = self.cut or reason

    def spend(self, *, entries: int = 0, size: int = 0) -> bool:
        """Subtract from the limits. Return False if one is used up and the search should stop."""
        self._entries -= entries
        self._bytes -= size
        if self._entries < 0:
            self.cut_short("too many files: search a smaller directory")
        elif self._bytes < 0:
            self.cut_short("too much data: search a smaller directory, or use include")
        elif time.monotonic() > self._deadline:
            self.cut_short("it took too long: search a smaller directory, or a simpler pattern")
        else:
            return True
        return False
