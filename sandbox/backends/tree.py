"""Backend of a real directory on the host, whose contents may be hostile."""

from __future__ import annotations

import os
import secrets
import stat as modes
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from sandbox.backends.names import meant, shown
from sandbox.backends.oserrors import as_file_errors, not_a_file
from sandbox.backends.protocol import (
    ABSENT,
    Entry,
    FileStat,
    FileType,
    Listing,
    OpenedFile,
    WriteGuard,
)
from sandbox.backends.results import appeared, changed
from sandbox.backends.tools import FileTools
from sandbox.directories.beneath import DIRECTORY, READ, Resolver, default_resolver
from sandbox.directories.reopening import path_below
from sandbox.errors import (
    FileAccessFailed,
    FileChanged,
    FileMissing,
    IsDirectory,
    NotDirectory,
    NotRegularFile,
    ReadOnlyPath,
)

_PERMISSIONS = 0o777
"""The bits of a replaced file's mode that are kept: never setuid, setgid or sticky."""


class TreeBackend(FileTools):
    """Backend of the files below `root`, which is `/` for the agent.

    Nothing outside `root` is ever opened, even if the tree contains hostile entries or changes at
    the same time. Links that stay inside are followed for reading, and in the directories of a
    path. Writing through a link is refused. Only regular files are read, and only through a
    descriptor that was checked after opening. Hard links can stay: a write replaces the name, and
    the old content stays under the other names.

    If this process is root, written files belong to `uid` and `gid`, by default the owner of
    `root`. A file that `guard` refuses is not written, through any link or spelling.
    """

    def __init__(
        self,
        root: Path | str,
        *,
        uid: int | None = None,
        gid: int | None = None,
        resolver: Resolver | None = None,
        guard: WriteGuard | None = None,
    ) -> None:
        super().__init__()
        self.root = Path(root).resolve()
        self._uid = uid
        self._gid = gid
        self._resolver = resolver or default_resolver()
        self._guard = guard

    def stat(self, path: str) -> FileStat | None:
        path = self.resolve(path)
        parts = _parts(path)
        try:
            with as_file_errors(path), self._open_root() as root:
                if not parts:
                    return _file_stat(os.fstat(root))
                with self._open(root, parts[:-1], DIRECTORY) as parent:
                    name = parts[-1].encode()
                    return _file_stat(os.stat(name, dir_fd=parent, follow_symlinks=False))
        except (FileMissing, NotDirectory):
            return None

    def open_file(self, path: str) -> OpenedFile:
        path = self.resolve(path)
        with as_file_errors(path), self._open_root() as root:
            descriptor = self._resolver.open(root, _parts(path), READ)
            found = os.fstat(descriptor)
            if not modes.S_ISREG(found.st_mode):
                os.close(descriptor)
                raise not_a_file(found.st_mode, path)
            return OpenedFile(os.fdopen(descriptor, "rb"), _file_stat(found))

    def list_directory(self, path: str, *, sizes: bool = True) -> Listing:
        path = self.resolve(path)
        limit = self.limits.directory
        with (
            as_file_errors(path),
            self._open_root() as root,
            self._open(root, _parts(path), DIRECTORY) as directory,
            os.scandir(directory) as scan,
        ):
            entries = [_entry(found, path, sizes) for found in islice(scan, limit)]
            truncated = next(scan, None) is not None
        return Listing(sorted(entries, key=lambda entry: entry.name), truncated)

    def write_bytes(self, path: str, data: bytes, *, if_version: str | None = None) -> None:
        self.write_chunks(path, (data,), if_version=if_version)

    def write_chunks(
        self, path: str, chunks: Iterable[bytes], *, if_version: str | None = None
    ) -> None:
        """Write a file like `write_bytes`, from pieces, for content too long for memory."""
        path = self.resolve(path)
        parts = _parts(path)
        if not parts:
            raise IsDirectory("a directory. Give the path of a file.", path)
        with self._lock, as_file_errors(path), self._open_root() as root:
            owner = self._owner(root)
            with self._make_directories(root, parts, owner, path) as parent:
                target = parts[-1].encode()
                mode = _require_replaceable(parent, target, path, if_version)
                temporary = _write_temporary(parent, chunks, mode, owner)
                try:
                    # Check again, because writing takes time: the file to replace must be the
                    # checked one.
                    _require_replaceable(parent, target, path, if_version)
                    if if_version == ABSENT:
                        _put_where_nothing_is(parent, temporary, target, path)
                    else:
                        os.rename(temporary, target, src_dir_fd=parent, dst_dir_fd=parent)
                except BaseException:
                    with suppress(FileNotFoundError):
                        os.unlink(temporary, dir_fd=parent)
                    raise

    def remove(self, path: str) -> None:
        """Delete a file, or a link itself (never its target). A missing file is not an error.

        Raises:
            FileError: The path is a directory, or its parent is missing; or the guard refuses.
        """
        path = self.resolve(path)
        parts = _parts(path)
        with self._lock, as_file_errors(path), self._open_root() as root:
            if not parts:
                raise IsDirectory("a directory. Give the path of a file.", path)
            with self._open(root, parts[:-1], DIRECTORY) as parent, suppress(FileNotFoundError):
                self._require_unguarded(root, parent, parts[-1:], path)
                os.unlink(parts[-1].encode(), dir_fd=parent)

    @contextmanager
    def _open_root(self) -> Iterator[int]:
        try:
            descriptor = os.open(self.root, DIRECTORY)
        except OSError as error:
            raise FileAccessFailed(
                f"the directory of these files cannot be opened on the host: {error.strerror}."
            ) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def _open(self, root: int, parts: list[str], flags: int) -> Iterator[int]:
        descriptor = self._resolver.open(root, parts, flags)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def _make_directories(
        self, root: int, parts: list[str], owner: tuple[int, int] | None, path: str
    ) -> Iterator[int]:
        """Yield a descriptor of the directory of the file `parts`; create missing directories."""
        existing = len(parts) - 1
        while True:
            try:
                directory = self._resolver.open(root, parts[:existing], DIRECTORY)
                break
            except FileNotFoundError:
                if existing == 0:
                    raise
                existing -= 1
        try:
            self._require_unguarded(root, directory, parts[existing:], path)
            for part in parts[existing:-1]:
                name = part.encode()
                try:
                    os.mkdir(name, 0o755, dir_fd=directory)
                    made = True
                except FileExistsError:
                    made = False
                below = os.open(name, DIRECTORY, dir_fd=directory)
                os.close(directory)
                directory = below
                if made and owner is not None:
                    os.fchown(directory, *owner)
            yield directory
        finally:
            os.close(directory)

    def _require_unguarded(self, root: int, directory: int, rest: list[str], path: str) -> None:
        """Raise `ReadOnlyPath` if the guard refuses the path `rest` below the open `directory`."""
        if self._guard is None:
            return
        problem = self._guard.refusal("/".join([*path_below(root, directory), *rest]))
        if problem is not None:
            raise ReadOnlyPath(problem, path)

    def _owner(self, root: int) -> tuple[int, int] | None:
        """Return (uid, gid) for written files; None if the process cannot change the owner."""
        if os.geteuid() != 0:
            return None
        found = os.fstat(root)
        return (
            found.st_uid if self._uid is None else self._uid,
            found.st_gid if self._gid is None else self._gid,
        )


def _parts(path: str) -> list[str]:
    """Return the names of a resolved path on the host."""
    return [part for part in meant(path).split("/") if part]


def _write_temporary(
    parent: int, chunks: Iterable[bytes], mode: int | None, owner: tuple[int, int] | None
) -> bytes:
    """Write all `chunks` to a new temporary file in `parent`, and return its name."""
    name = f".vel-{secrets.token_hex(12)}.tmp".encode()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o644, dir_fd=parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if owner is not None:
                os.fchown(descriptor, *owner)
            if mode is not None:
                os.fchmod(descriptor, mode)
            for chunk in chunks:
                stream.write(chunk)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent)
        raise
    return name


def _put_where_nothing_is(parent: int, temporary: bytes, target: bytes, path: str) -> None:
    """Give the temporary file its final name, if no file has that name.

    Uses a link, which never replaces a file: a file that a command creates right now is not lost.
    """
    try:
        os.link(temporary, target, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
    except FileExistsError:
        raise appeared(path) from None
    os.unlink(temporary, dir_fd=parent)


def _require_replaceable(parent: int, name: bytes, path: str, version: str | None) -> int | None:
    """Return the mode of the file that a write will replace, or None for a new file."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        if version not in (None, ABSENT):
            raise FileChanged("deleted since you read it. Read it again.", path) from None
        return None
    if modes.S_ISLNK(found.st_mode):
        raise NotRegularFile("a link, which is not written through. Write to its target.", path)
    if not modes.S_ISREG(found.st_mode):
        raise not_a_file(found.st_mode, path)
    if version == ABSENT:
        raise appeared(path)
    if version is not None and _file_stat(found).version != version:
        raise changed(path)
    return found.st_mode & _PERMISSIONS


def _type(mode: int) -> FileType:
    if modes.S_ISREG(mode):
        return "file"
    if modes.S_ISDIR(mode):
        return "directory"
    return "link" if modes.S_ISLNK(mode) else "other"


def _file_stat(found: os.stat_result) -> FileStat:
    version = (
        f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"
    )
    return FileStat(_type(found.st_mode), found.st_size, found.st_mtime, version)


def _entry(found: os.DirEntry[str], parent: str, sizes: bool) -> Entry:
    kind: FileType = "other"
    size = None
    if found.is_symlink():
        kind = "link"
    elif found.is_dir(follow_symlinks=False):
        kind = "directory"
    elif found.is_file(follow_symlinks=False):
        kind = "file"
        if sizes:
            with suppress(FileNotFoundError):
                size = found.stat(follow_symlinks=False).st_size
    raw = os.fsencode(found.name)
    try:
        return Entry(parent, shown(raw.decode()), kind, size)
    except UnicodeDecodeError:
        name = shown(raw.decode(errors="backslashreplace"))
        return Entry(parent, name, kind, size, addressable=False)
