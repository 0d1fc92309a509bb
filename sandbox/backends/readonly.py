"""A backend that makes another backend read-only."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sandbox.backends.limits import WalkLimit
from sandbox.backends.protocol import Entry, FileBackend, FileStat, Listing, OpenedFile
from sandbox.backends.tools import FileTools
from sandbox.errors import ReadOnlyPath

_READ_ONLY = "read-only. Write to another directory."


class ReadOnly(FileTools):
    """A backend that can be read but not written. `advice` says where to write instead."""

    supports_write = False

    def __init__(self, backend: FileBackend, advice: str = _READ_ONLY) -> None:
        super().__init__()
        self._backend = backend
        self._advice = advice
        self.cwd = backend.cwd

    def resolve(self, path: str) -> str:
        return self._backend.resolve(path)

    def stat(self, path: str) -> FileStat | None:
        return self._backend.stat(path)

    def open_file(self, path: str) -> OpenedFile:
        return self._backend.open_file(path)

    def list_directory(self, path: str, *, sizes: bool = True) -> Listing:
        return self._backend.list_directory(path, sizes=sizes)

    def walk(
        self,
        path: str,
        walk_limit: WalkLimit,
        *,
        skip: Collection[str] = (),
        depth: int | None = None,
    ) -> Iterator[Entry]:
        return self._backend.walk(path, walk_limit, skip=skip, depth=depth)

    def write_bytes(self, path: str, data: bytes, *, if_version: str | None = None) -> None:
        raise ReadOnlyPath(self._advice, self.resolve(path))
