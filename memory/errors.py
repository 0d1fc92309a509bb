"""Errors of a memory. Code in `memory.actions` converts them to the service errors of `agents`."""

from __future__ import annotations


class MemoryRefused(Exception):
    """Base class of a memory's errors. Users may see the message; `code` is stable for programs."""

    code = "refused"


class InvalidEdit(MemoryRefused):
    """The edit is invalid: its path, its size, or content that cannot be stored."""

    code = "invalid"


class NameRefused(MemoryRefused):
    """The name is already in use, or looks like one in use. `code` says which."""

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
