"""Limits of file operations: what a hostile tree may cost the host."""

from __future__ import annotations

import time
from dataclasses import dataclass

MAX_DEPTH = 100
"""A walk goes no deeper than this many directories."""


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Sizes in bytes, times in seconds, lengths in characters."""

    read_output: int = 50_000
    """The content of one read_file."""
    line: int = 2_000
    """One line in read_file; the rest of a longer one is left out."""
    scan: int = 64 * 1024**2
    """read_file and content_hash look at no more of a file than this."""
    edit: int = 10 * 1024**2
    """The largest file that edit_file and write_file take."""
    directory: int = 10_000
    """Entries read of one directory, by ls and by walks."""
    output: int = 100_000
    """The names and lines of one ls, glob or grep."""
    listing: int = 1_000
    """Entries of one ls."""
    glob_matches: int = 1_000
    grep_matches: int = 100
    grep_total: int = 1_000
    """grep stops counting here."""
    grep_excerpt: int = 500
    """One matching line in grep."""
    search_seconds: float = 10.0
    search_entries: int = 100_000
    search_bytes: int = 256 * 1024**2


class WalkLimit:
    """What one search may still spend. `cut` says why its results are incomplete, if they are."""

    def __init__(self, limits: FileLimits) -> None:
        self._entries = limits.search_entries
        self._bytes = limits.search_bytes
        self._deadline = time.monotonic() + limits.search_seconds
        self.cut: str | None = None

    def cut_short(self, reason: str) -> None:
        self.cut = self.cut or reason

    def spend(self, *, entries: int = 0, size: int = 0) -> bool:
        """Take from the limit; False when it is used up and the search should stop."""
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
