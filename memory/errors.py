"""Errors of a memory. `agents` converts them to its own service errors."""

from __future__ import annotations


class MemoryRefused(Exception):
    """The base class. Users may see the message; `code` is a stable word for programs."""

    code = "refused"


class InvalidEdit(MemoryRefused):
    """The edit is invalid: its path, its size, or content that cannot be stored."""

    code = "invalid"


class NameRefused(MemoryRefused):
    """The name is taken, or looks like a taken one. `code` has the reason."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class NoSuchFile(MemoryRefused):
    """The file or its revision does not exist."""

    code = "not_found"


class Purged(NoSuchFile):
    """The content of this revision was erased."""

    code = "purged"


class Changed(MemoryRefused):
    """The file is not at the revision that the change builds on."""

    code = "stale"
