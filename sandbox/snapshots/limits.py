"""The limits of one snapshot of a hostile tree."""

from __future__ import annotations

from dataclasses import dataclass

LEFT_OUT = frozenset({"node_modules", "__pycache__", ".venv"})
"""Directories that tools fill repeatedly; their files would displace the files of people."""


@dataclass(frozen=True, slots=True)
class SnapshotLimits:
    """Sizes in bytes, times in seconds. Files beyond a limit are listed as not kept."""

    entries: int = 20_000
    """The number of names in all directories together."""
    directory: int = 10_000
    """The number of names in one directory. A larger directory is not scanned."""
    depth: int = 60
    """The maximum depth of nested directories. Each level needs a descriptor during the walk."""
    file_bytes: int = 16 * 1024**2
    """A larger file is not kept."""
    read_bytes: int = 256 * 1024**2
    """How much one snapshot reads of new or changed files."""
    seconds: float = 5.0
    names: int = 4 * 1024**2
    """The number of characters in all paths and link targets together."""
