"""Backend that lets no agent overwrite a file that has changed since the agent read it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from sandbox.backends.protocol import (
    ABSENT,
    FileBackend,
    Result,
)
from sandbox.backends.results import reports_errors
from sandbox.backends.tools import ReadThrough
from sandbox.directories.file_lock import FileLock, LockTimeout
from sandbox.errors import FileAccessFailed, FileChanged, FileError, FileMissing


class SeenFiles(Protocol):
    """The files that an agent has read or written: the SHA-256 of the content it saw, by path."""

    def get(self, path: str) -> str | None:
        """Return the hash; ABSENT if there was no file; None if the path was never read."""
        ...

    def put(self, path: str, content_hash: str | None) -> None:
        """Store the hash; ABSENT if there was no file, None if it could not be hashed."""
        ...


class RememberingBackend(ReadThrough):
    """The files of `backend`, protected from overwriting changes that the agent has not seen.

    write_file and edit_file refuse a file that has changed since the agent read it. Reading any
    lines counts for the whole file. The agent's own writes count as read. A file that the agent
    never read is overwritten, unless `used_by_others` says that another agent has used this path at
    the same time. Agents with the same `lock` check and write one after the other; against
    commands, only the version check of `write_bytes` protects.
    """

    has_own_tools = True

    def __init__(
        self,
        backend: FileBackend,
        seen: SeenFiles,
        lock: FileLock,
        used_by_others: Callable[[str], bool] | None = None,
    ) -> None:
        super().__init__(backend)
        self._used_by_others = used_by_others
        self._seen = seen
        self._shared_lock = lock
        self.supports_write = backend.supports_write

    @reports_errors
    def read_file(
        self, path: str, offset: int = 0, limit: int = 100, line_offset: int = 0
    ) -> Result:
        path = self.resolve(path)
        # Hash before reading: a change in between then differs from the hash at the next write.
        known = self._current_hash(path)
        result = self._backend.read_file(path, offset, limit, line_offset)
        if "error" not in result or known == ABSENT:
            self._seen.put(path, known)
        return result

    @reports_errors
    def write_file(self, path: str, content: str, *, expected_hash: str | None = None) -> Result:
        path = self.resolve(path)
        with self._exclusive(path):
            expected = self._seen.get(path) if expected_hash is None else expected_hash
            if expected is None:
                self._require_unused(path)
            return super().write_file(path, content, expected_hash=expected)

    @reports_errors
    def edit_file(
        self,
        path: str,
        old_text: str,
        new_text: str,
        replace_all: bool = False,
        *,
        expected_hash: str | None = None,
    ) -> Result:
        path = self.resolve(path)
        with self._exclusive(path):
            expected = self._seen.get(path) if expected_hash is None else expected_hash
            return super().edit_file(path, old_text, new_text, replace_all, expected_hash=expected)

    def write_bytes(self, path: str, data: bytes, *, if_version: str | None = None) -> None:
        path = self.resolve(path)
        with self._exclusive(path):
            self._backend.write_bytes(path, data, if_version=if_version)
            self._seen.put(path, hashlib.sha256(data).hexdigest())

    def _require_unused(self, path: str) -> None:
        """Raise `FileChanged` for a file of another agent that this agent has never read."""
        if self._used_by_others is None or self._backend.stat(path) is None:
            return
        if self._used_by_others(path):
            raise FileChanged(
                "another agent has used this file since you started, and you have not read it. "
                "Read it, then repeat the change, or write to another path.",
                path,
            )

    def _current_hash(self, path: str) -> str | None:
        try:
            return self._backend.content_hash(path)
        except FileMissing:
            return ABSENT
        except FileError:
            return None  # too large to compare, or unreadable: reading then reports the reason

    @contextmanager
    def _exclusive(self, path: str) -> Iterator[None]:
        try:
            with self._shared_lock:
                yield
        except LockTimeout:
            raise FileAccessFailed(
                "in use by another agent of this session. Try again.", path
            ) from None
