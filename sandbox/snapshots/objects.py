"""Storage of file contents by their SHA-256, each content once."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import secrets
from collections.abc import Collection
from pathlib import Path

_FICLONE = 0x40049409
_CANNOT_CLONE = {errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS}
_SMALL = 256 * 1024
_BLOCK = 1024 * 1024
_DIGEST = re.compile(r"[0-9a-f]{64}")


class ObjectStore:
    """Contents as files `ab/cdef…` below `directory`, which only Vel's own account can enter."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.added_bytes = 0
        """The number of new bytes that `add` has stored."""

    def path_of(self, digest: str) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"{digest!r} is not a SHA-256.")
        return self.directory / digest[:2] / digest[2:]

    def add(self, source: int, size: int, limit: int) -> str | None:
        """Store the content of the open file `source`, which had `size` bytes. Return its hash.

        Returns None, and stores nothing, if the file has grown beyond `limit` bytes. Raises OSError
        if the store cannot be written.
        """
        if size > _SMALL:
            return self._add_large(source, limit)
        data = _read_at_most(source, limit + 1)
        if len(data) > limit:
            return None
        digest = hashlib.sha256(data).hexdigest()
        if not os.path.exists(self.path_of(digest)):
            name, descriptor = self._temporary()
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(data)
                self._settle(name, digest, len(data))
            finally:
                name.unlink(missing_ok=True)
        return digest

    def _add_large(self, source: int, limit: int) -> str | None:
        name, descriptor = self._temporary()
        try:
            with os.fdopen(descriptor, "w+b") as stream:
                # A clone shares the blocks on the disk, and stays the same when the source changes.
                if clone(source, descriptor):
                    source = descriptor
                    os.lseek(descriptor, 0, os.SEEK_SET)
                digest, length = hashlib.sha256(), 0
                while block := os.read(source, min(_BLOCK, limit + 1 - length)):
                    length += len(block)
                    if length > limit:
                        return None
                    digest.update(block)
                    if source != descriptor:
                        stream.write(block)
            self._settle(name, digest.hexdigest(), length)
            return digest.hexdigest()
        finally:
            name.unlink(missing_ok=True)

    def _temporary(self) -> tuple[Path, int]:
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = self.directory / f"new-{secrets.token_hex(8)}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return name, os.open(name, flags, 0o600)

    def _settle(self, name: Path, digest: str, size: int) -> None:
        target = self.path_of(digest)
        if target.exists():
            return
        target.parent.mkdir(mode=0o700, exist_ok=True)
        os.rename(name, target)
        self.added_bytes += size

    def read(self, digest: str, max_bytes: int) -> bytes | None:
        """Return the first `max_bytes` of the content with the hash `digest`.

        Returns None if it is no longer stored.
        """
        try:
            with open(self.path_of(digest), "rb") as stream:
                return stream.read(max_bytes)
        except FileNotFoundError:
            return None

    def copy_to(self, digest: str, target: int) -> bool:
        """Write the content with the hash `digest` to the open, empty file `target`.

        Return False if the content is lost or damaged.
        """
        try:
            source = os.open(self.path_of(digest), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            cloned = clone(source, target)
            found = hashlib.sha256()
            while block := os.read(source, _BLOCK):
                found.update(block)
                if not cloned:
                    _write_all(target, block)
            return found.hexdigest() == digest
        finally:
            os.close(source)

    def remove_all_but(self, kept: Collection[str]) -> int:
        """Delete all contents except those in `kept`. Return the number of freed bytes."""
        freed = 0
        if not self.directory.is_dir():
            return 0
        with os.scandir(self.directory) as found:
            entries = list(found)
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)  # an unfinished copy; this process has the lock
                continue
            with os.scandir(entry.path) as inner:
                for item in list(inner):
                    if entry.name + item.name not in kept:
                        freed += item.stat(follow_symlinks=False).st_size
                        os.unlink(item.path)
        return freed


def clone(source: int, target: int) -> bool:
    """Make `target` share the disk blocks of `source`.

    Return False if the file system does not support this.
    """
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno in _CANNOT_CLONE:
            return False
        raise
    return True


def _read_at_most(descriptor: int, limit: int) -> bytes:
    parts, left = [], limit
    while left > 0 and (part := os.read(descriptor, min(_BLOCK, left))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
