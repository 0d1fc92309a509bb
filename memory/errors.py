"""What a memory refuses. `agents` turns these into its own service errors."""

from __future__ import annotations


class MemoryRefused(Exception):
    """Base. The message is fit to be shown; `code` is a stable word for programs."""

    code = "refused"


class InvalidEdit(MemoryRefused):
    """The edit does not fit: a path, a size, or content that cannot be stored."""

    code = "invalid"


class NoSuchFile(MemoryRefused):
    """There is no such file, or no such revision of it."""

    code = "not_found"


class Changed(MemoryRefused):
    """The file is not at the revision that the change builds on."""

    code = "stale"
