"""What one snapshot of a hostile tree may cost."""

from __future__ import annotations

from dataclasses import dataclass

LEFT_OUT = frozenset({"node_modules", "__pycache__", ".venv"})
"""Directories that tools fill and fill again; their files would crowd out what people wrote."""


@dataclass(frozen=True, slots=True)
class SnapshotLimits:
    """Sizes in bytes, times in seconds. What is over a limit is listed as not kept."""

    entries: int = 20_000
    """Names of all directories together."""
    directory: int = 10_000
    """Names in one directory; of a fuller one nothing is looked at."""
    depth: int = 60
    """Directories inside one another; each holds a descriptor while the walk is in it."""
    file_bytes: int = 16 * 1024**2
    """A larger file is not kept."""
    read_bytes: int = 256 * 1024**2
    """What one snapshot reads of files that are new or changed."""
    seconds: float = 5.0
    names: int = 4 * 1024**2
    """Characters of all paths and link targets together."""
