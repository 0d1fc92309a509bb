"""Archives of a workspace as tar.gz files that any careful extractor accepts."""

from __future__ import annotations

import io
import os
import secrets
import stat as modes
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.directories.reopening import open_directory, open_file

MAX_DEPTH = 60
MAX_FILE_BYTES = 2 * 1024**3


@dataclass(slots=True)
class Archived:
    """The result of `write_archive`.

    `files` is the number of regular files, `size` the size of the archive in bytes. `left_out` has
    (path, reason) of each omitted entry.
    """

    files: int = 0
    size: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)


def write_archive(areas: Mapping[str, Path], target: Path) -> Archived:
    """Write the areas into the new file `target` (mode 0600), which appears when it is complete.

    It contains only directories, regular files, and links that stay inside. Members have no
    particular owner and no setuid bits, so `tarfile` with `filter="data"` accepts all of them.

    Raises:
        FileExistsError: `target` exists. It stays unchanged.
        OSError: The archive cannot be written.
    """
    done = Archived()
    temporary = target.with_name(f".{target.name}-{secrets.token_hex(6)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with (
            os.fdopen(descriptor, "wb") as stream,
            tarfile.open(fileobj=stream, mode="w:gz", format=tarfile.PAX_FORMAT) as archive,
        ):
            for name in sorted(areas):
                try:
                    directory = open_directory(areas[name])
                except OSError as error:
                    done.left_out.append((name, error.strerror or "cannot be opened"))
                    continue
                try:
                    _add_directory(archive, directory, name, 1, done)
                finally:
                    os.close(directory)
        os.link(temporary, target)  # never replaces an existing archive
        done.size = target.stat().st_size
    finally:
        temporary.unlink(missing_ok=True)
    return done


def _add_directory(
    archive: tarfile.TarFile, directory: int, path: str, depth: int, done: Archived
) -> None:
    _append(archive, _member(path, tarfile.DIRTYPE, os.fstat(directory)))
    if depth > MAX_DEPTH:
        done.left_out.append((path, f"nested deeper than {MAX_DEPTH} directories"))
        return
    for name in sorted(os.listdir(directory)):
        inner = f"{path}/{name}"
        try:
            reason = _add(archive, directory, name, inner, depth, done)
        except _ReadError as error:
            reason = str(error)
        if reason:
            done.left_out.append((inner, reason))


def _append(
    archive: tarfile.TarFile, member: tarfile.TarInfo, content: io.RawIOBase | None = None
) -> None:
    archive.addfile(member, content)
    archive.getmembers().clear()  # it would keep an object for each name, up to 200,000


class _ReadError(Exception):
    """A part of the workspace cannot be read. Errors of the archive itself are OSErrors."""


def _add(
    archive: tarfile.TarFile, parent: int, name: str, path: str, depth: int, done: Archived
) -> str:
    """Add one name to the archive. Return the reason if it was omitted, otherwise ""."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if modes.S_ISLNK(status.st_mode):
            target = os.readlink(name, dir_fd=parent)
            if target.startswith("/") or ".." in target.split("/"):
                return "a link that could lead out"
            link = _member(path, tarfile.SYMTYPE, status)
            link.linkname = target
            _append(archive, link)
            return ""
        if modes.S_ISDIR(status.st_mode):
            opened = open_directory(name, parent)
        elif modes.S_ISREG(status.st_mode):
            opened = open_file(name, parent)
        else:
            return "a FIFO, socket or device"
    except OSError as error:
        raise _ReadError(error.strerror or str(error)) from error
    try:
        status = os.fstat(opened)
        if modes.S_ISDIR(status.st_mode):
            _add_directory(archive, opened, path, depth + 1, done)
            return ""
        if not modes.S_ISREG(status.st_mode):
            return "no longer a file"
        if status.st_size > MAX_FILE_BYTES:
            return f"larger than {MAX_FILE_BYTES} bytes"
        member = _member(path, tarfile.REGTYPE, status)
        member.size = status.st_size
        _append(archive, member, _Exactly(opened, status.st_size))
        done.files += 1
        return ""
    finally:
        os.close(opened)


def _member(path: str, kind: bytes, status: os.stat_result) -> tarfile.TarInfo:
    member = tarfile.TarInfo(path)
    member.type = kind
    member.mode = status.st_mode & 0o777
    member.mtime = int(status.st_mtime)
    return member


class _Exactly(io.RawIOBase):
    """A file of exactly `size` bytes, as its header says, even if the file changes meanwhile.

    Zeros replace bytes that disappeared.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._left = size

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        data = os.read(self._descriptor, wanted) if wanted else b""
        # The writer of the archive treats a short read as the end.
        while len(data) < wanted and (more := os.read(self._descriptor, wanted - len(data))):
            data += more
        data += bytes(wanted - len(data))
        self._left -= wanted
        return data
