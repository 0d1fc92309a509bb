"""Backend without a file system: its files are bytes by path, in memory or another store."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import BytesIO
from typing import Protocol

from sandbox.backends.limits import WalkLimit
from sandbox.backends.protocol import ABSENT, Entry, FileStat, Listing, OpenedFile
from sandbox.backends.results import appeared, changed
from sandbox.backends.tools import FileTools
from sandbox.errors import FileChanged, FileMissing, IsDirectory, NotDirectory, StorageFull


@dataclass(frozen=True, slots=True)
class StoredFile:
    """The metadata of a file in a store. Times are seconds since 1970."""

    path: str
    size: int
    created: float
    modified: float


@dataclass
class FileData:
    """The lines of a text file, with its times (UTC, ISO 8601) and its size in bytes.

    >>> FileData.from_content("All is well.").size_bytes
    12
    """

    content: list[str]
    created_at: str
    modified_at: str
    size_bytes: int = 0

    @classmethod
    def from_content(cls, content: str) -> FileData:
        """Return the data of a file with this content that is created now."""
        now = _iso(time.time())
        return cls(content.split("\n"), now, now, len(content.encode()))


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


class FileStore(Protocol):
    """Interface of a store: a mapping from canonical absolute paths to bytes.

    The store keeps the times of files; it has no directories. `store[path] = data` keeps the
    creation time of an existing path. A full store raises sandbox.errors.StorageFull and changes
    nothing. A missing path raises KeyError.
    """

    def __getitem__(self, path: str) -> bytes: ...

    def __setitem__(self, path: str, data: bytes) -> None: ...

    def __delitem__(self, path: str) -> None: ...

    def info(self, path: str) -> StoredFile | None: ...

    def scan(self, prefix: str) -> Iterable[StoredFile]:
        """Return all files whose path starts with `prefix`, in any order.

        `prefix` ends in a slash.
        """
        ...


class MemoryFileStore:
    """FileStore in memory, with at most `max_files` files and `max_bytes` in total."""

    def __init__(self, max_bytes: int = 64 * 1024**2, max_files: int = 10_000) -> None:
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._files: dict[str, tuple[StoredFile, bytes]] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def __getitem__(self, path: str) -> bytes:
        return self._files[path][1]

    def __setitem__(self, path: str, data: bytes) -> None:
        now = time.time()
        with self._lock:
            old = self._files.get(path)
            total = self._bytes + len(data) - (len(old[1]) if old else 0)
            if total > self._max_bytes or (old is None and len(self._files) >= self._max_files):
                raise StorageFull(
                    f"no room left: the limits are {self._max_bytes} bytes and {self._max_files} "
                    "files. Make other files shorter.",
                    path,
                )
            info = (
                replace(old[0], size=len(data), modified=now)
                if old
                else StoredFile(path, len(data), now, now)
            )
            self._files[path] = (info, bytes(data))
            self._bytes = total

    def __delitem__(self, path: str) -> None:
        with self._lock:
            self._bytes -= len(self._files.pop(path)[1])

    def info(self, path: str) -> StoredFile | None:
        found = self._files.get(path)
        return None if found is None else found[0]

    def scan(self, prefix: str) -> list[StoredFile]:
        with self._lock:
            return [info for path, (info, _) in self._files.items() if path.startswith(prefix)]


class StoreBelow:
    """FileStore of the files of another store below the directory `top`, which is `/` here."""

    def __init__(self, store: FileStore, top: str) -> None:
        self._store = store
        self._top = top

    def __getitem__(self, path: str) -> bytes:
        return self._store[self._top + path]

    def __setitem__(self, path: str, data: bytes) -> None:
        self._store[self._top + path] = data

    def __delitem__(self, path: str) -> None:
        del self._store[self._top + path]

    def info(self, path: str) -> StoredFile | None:
        found = self._store.info(self._top + path)
        return None if found is None else replace(found, path=path)

    def scan(self, prefix: str) -> list[StoredFile]:
        cut = len(self._top)
        return [
            replace(info, path=info.path[cut:]) for info in self._store.scan(self._top + prefix)
        ]


class StateFilesystemBackend(FileTools):
    """Backend that keeps its files in a FileStore, with `/` as the top directory.

    A directory exists as long as there are files below it. No file of the host is used.

    >>> files = StateFilesystemBackend()
    >>> files.write_file("/notes.md", "All is well.")["size_bytes"]
    12
    >>> [entry["name"] for entry in files.ls("/")["entries"]]
    ['notes.md']
    """

    def __init__(self, store: FileStore | None = None) -> None:
        super().__init__()
        self.store: FileStore = MemoryFileStore() if store is None else store

    def stat(self, path: str) -> FileStat | None:
        path = self.resolve(path)
        info = self.store.info(path)
        if info is not None:
            data = self._content(path)
            return None if data is None else _file_stat(info, data)
        return FileStat("directory") if self._is_directory(path) else None

    def file_data(self, path: str) -> FileData:
        """Return a text file with its times. Raises `FileError` for a path that is not a file.

        Bytes that are not UTF-8 become replacement characters.
        """
        with self._lock:
            data = self.open_file(path).stream.read()
            info = self.store.info(self.resolve(path))
        assert info is not None
        lines = data.decode(errors="replace").split("\n")
        return FileData(lines, _iso(info.created), _iso(info.modified), len(data))

    def open_file(self, path: str) -> OpenedFile:
        path = self.resolve(path)
        info, data = self.store.info(path), self._content(path)
        if info is not None and data is not None:
            return OpenedFile(BytesIO(data), _file_stat(info, data), commands=False)
        if self._is_directory(path):
            raise IsDirectory("a directory. List it with ls.", path)
        self._require_directories_above(path)
        raise FileMissing("no such file. List its parent with ls.", path)

    def list_directory(self, path: str, *, sizes: bool = True) -> Listing:
        path = self.resolve(path)
        prefix = _prefix(path)
        entries: dict[str, Entry] = {}
        for info in self.store.scan(prefix):
            name, slash, _ = info.path[len(prefix) :].partition("/")
            size = info.size if sizes else None
            entries[name] = (
                Entry(path, name, "directory") if slash else Entry(path, name, "file", size)
            )
        if not entries and path != "/":
            if self.store.info(path) is not None:
                raise NotDirectory("a file. Read it with read_file.", path)
            self._require_directories_above(path)
            raise FileMissing("no such directory. List its parent with ls.", path)
        names = sorted(entries)
        limit = self.limits.directory
        return Listing([entries[name] for name in names[:limit]], len(names) > limit)

    def walk(
        self,
        path: str,
        walk_limit: WalkLimit,
        *,
        skip: Collection[str] = (),
        depth: int | None = None,
    ) -> Iterator[Entry]:
        """Yield the files below a directory, sorted, from one scan of the store.

        No directories are yielded, because the store has none.
        """
        path = self.resolve(path)
        prefix = _prefix(path)
        for info in sorted(self.store.scan(prefix), key=lambda info: info.path.split("/")):
            if not walk_limit.spend(entries=1):
                return
            parts = info.path[len(prefix) :].split("/")
            if (depth is not None and len(parts) > depth) or not set(skip).isdisjoint(parts[:-1]):
                continue
            parent, _, name = info.path.rpartition("/")
            yield Entry(parent or "/", name, "file", info.size)

    def write_bytes(self, path: str, data: bytes, *, if_version: str | None = None) -> None:
        path = self.resolve(path)
        with self._lock:
            if path == "/" or self._is_directory(path):
                raise IsDirectory("a directory. Give the path of a file.", path)
            self._require_directories_above(path)
            if if_version is not None:
                found = self.stat(path)
                if found is not None and if_version == ABSENT:
                    raise appeared(path)
                if found is None and if_version != ABSENT:
                    raise FileChanged("deleted since you read it. Read it again.", path)
                if found is not None and found.version != if_version:
                    raise changed(path)
            self.store[path] = data

    def _content(self, path: str) -> bytes | None:
        try:
            return self.store[path]
        except KeyError:
            return None

    def _is_directory(self, path: str) -> bool:
        return path == "/" or any(True for _ in self.store.scan(_prefix(path)))

    def _require_directories_above(self, path: str) -> None:
        parts = path.split("/")
        for end in range(2, len(parts)):
            above = "/".join(parts[:end])
            if self.store.info(above) is not None:
                raise NotDirectory(f"{above!r} is a file, not a directory.", path)


def _prefix(path: str) -> str:
    return path if path == "/" else path + "/"


def _file_stat(info: StoredFile, data: bytes) -> FileStat:
    """Return metadata with a hash of the content as version.

    Clocks are too coarse to distinguish two writes.
    """
    return FileStat("file", len(data), info.modified, hashlib.sha256(data).hexdigest())
