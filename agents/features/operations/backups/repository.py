"""A place for backups: objects and manifests, in a directory or in S3-compatible storage."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from agents.features.operations.backups.errors import BackupRefused, cannot_write
from agents.features.operations.backups.manifest import MOST_BYTES, NAME, UnreadManifest
from agents.features.operations.backups.swap import sync_directory
from agents.features.operations.owner import give_to_owner

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Repository(ABC):
    """Objects by the SHA-256 of their contents, and signed manifests by the name of the backup."""

    name: str
    """The place for people, without secrets."""

    @abstractmethod
    def prepare(self) -> None:
        """Create the repository if it is missing. Raises `BackupRefused`."""

    @abstractmethod
    def shared(self) -> AbstractContextManager[None]:
        """Keep others from deleting objects. Raises `BackupRefused` while somebody deletes."""

    @abstractmethod
    def alone(self) -> AbstractContextManager[None]:
        """Keep others from adding and reading. Raises `BackupRefused` while somebody does."""

    @abstractmethod
    def digests(self) -> dict[str, int]:
        """Return the stored size in bytes of each object."""

    @abstractmethod
    def keep(self, file: BinaryIO, digest: str) -> None:
        """Store a complete object. `file` is at its start."""

    @abstractmethod
    def open(self, digest: str) -> BinaryIO:
        """Open an object. Raises `BackupRefused` if it is missing."""

    @abstractmethod
    def delete(self, digest: str) -> None:
        """Delete an object, if it exists."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all backups, the oldest first."""

    @abstractmethod
    def keep_manifest(self, name: str, data: bytes) -> None:
        """Store a manifest, after all its objects."""

    @abstractmethod
    def _manifest_bytes(self, name: str) -> bytes | None:
        """Return at most `MOST_BYTES` + 1 bytes of a manifest, or None."""

    @abstractmethod
    def remove_remains(self) -> None:
        """Delete the remains of killed processes. Call it in `alone`."""

    @abstractmethod
    def delete_manifest(self, name: str) -> None:
        """Delete a manifest. Its objects stay."""

    def manifest(self, name: str) -> UnreadManifest:
        """Read a manifest. Raises `BackupRefused`."""
        data = self._manifest_bytes(name) if NAME.fullmatch(name) else None
        if data is None:
            raise BackupRefused(
                f"There is no backup {name!a} in {self.name}. `vel backup list` shows all."
            )
        if len(data) > MOST_BYTES:
            raise BackupRefused(f"The manifest of {name} is too large. Use another backup.")
        return UnreadManifest(name, data)

    def find(self, wanted: str) -> str:
        """Return `wanted`, or the name of the last backup for "latest".

        Does not check that the backup `wanted` exists.

        Raises:
            BackupRefused: There is no last backup.
        """
        if wanted != "latest":
            return wanted
        names = self.names()
        if not names:
            raise BackupRefused(f"There is no backup in {self.name}.")
        return names[-1]


class DirectoryRepository(Repository):
    """A directory. Other accounts cannot read its files, because they contain all conversations."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._renamed: set[Path] = set()
        self.name = str(path)

    def prepare(self) -> None:
        try:
            self.path.mkdir(mode=0o700, exist_ok=True)
            entries = {entry.name for entry in os.scandir(self.path)}
            if entries and "snapshots" not in entries:
                raise BackupRefused(
                    f"{self.path} has files, and no backups. Name a new or an empty directory."
                )
            for each in ("objects", "new", "snapshots"):
                self._make(self.path / each)
        except FileNotFoundError:
            raise BackupRefused(
                f"The directory {self.path.parent} does not exist. Create it first."
            ) from None
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def shared(self) -> AbstractContextManager[None]:
        return self._locked(fcntl.LOCK_SH, "`vel backup prune` deletes old backups")

    def alone(self) -> AbstractContextManager[None]:
        return self._locked(fcntl.LOCK_EX, "Another backup, check or restore uses")

    @contextmanager
    def _locked(self, how: int, who: str) -> Iterator[None]:
        try:
            lock = os.open(
                self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
        except PermissionError:
            if how == fcntl.LOCK_EX:
                raise self._failed("write to") from None
            yield  # a read-only copy, from which no process deletes
            return
        except FileNotFoundError:
            raise BackupRefused(f"There are no backups in {self.path}.") from None
        except OSError as error:
            if how == fcntl.LOCK_SH and error.errno == errno.EROFS:
                yield
                return
            raise BackupRefused(f"Cannot use {self.path}: {error.strerror}.") from error
        try:
            give_to_owner(lock, self.path)
            try:
                fcntl.flock(lock, how | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BackupRefused(f"{who} in {self.path}. Try again when it has ended.") from None
            yield
        finally:
            os.close(lock)

    def _failed(self, what: str) -> BackupRefused:
        return BackupRefused(
            f"This account has no permission to {what} {self.path}. Change its owner, or name "
            "another directory."
        )

    def _place(self, digest: str) -> Path:
        return self.path / "objects" / digest[:2] / digest

    def digests(self) -> dict[str, int]:
        found = {}
        for path in (self.path / "objects").glob("??/*"):
            found[path.name] = path.lstat().st_size
        return found

    def keep(self, file: BinaryIO, digest: str) -> None:
        place = self._place(digest)
        try:
            self._make(place.parent)
        except OSError as error:
            raise cannot_write(self.path, error) from error
        self._write(place, file)

    def _make(self, directory: Path) -> None:
        """Create a directory for the owner of the repository, if it is missing."""
        try:
            directory.mkdir(mode=0o700)
        except FileExistsError:
            return
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            give_to_owner(descriptor, self.path)
        finally:
            os.close(descriptor)

    def _write(self, place: Path, file: BinaryIO) -> None:
        """Write a complete file under another name, then give it its name."""
        part = self.path / "new" / secrets.token_hex(8)
        try:
            with os.fdopen(
                os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb"
            ) as target:
                while block := file.read(1024**2):
                    target.write(block)
                target.flush()
                give_to_owner(target.fileno(), self.path)
                os.fsync(target.fileno())
            os.rename(part, place)
            self._renamed.add(place.parent)
        except BaseException as error:
            with suppress(OSError):  # it was not created, or `prune` deletes it
                part.unlink()
            if isinstance(error, OSError):
                raise cannot_write(self.path, error) from error
            raise

    def open(self, digest: str) -> BinaryIO:
        try:
            return _open_regular(self._place(digest))
        except FileNotFoundError:
            raise BackupRefused(
                f"The object {digest[:12]} of the backup is missing. Use another backup."
            ) from None
        except OSError as error:
            raise BackupRefused(
                f"Cannot read the object {digest[:12]} in {self.path}: {error.strerror}."
            ) from error

    def delete(self, digest: str) -> None:
        self._place(digest).unlink(missing_ok=True)

    def names(self) -> list[str]:
        try:
            entries = os.listdir(self.path / "snapshots")
        except FileNotFoundError:
            raise BackupRefused(
                f"{self.path} is no directory of backups. `vel backup create --to` makes one."
            ) from None
        except OSError as error:
            raise BackupRefused(f"Cannot read {self.path}: {error.strerror}.") from error
        found = [each.removesuffix(".json") for each in entries if each.endswith(".json")]
        return sorted(each for each in found if NAME.fullmatch(each))

    def _manifest_place(self, name: str) -> Path:
        return self.path / "snapshots" / f"{name}.json"

    def keep_manifest(self, name: str, data: bytes) -> None:
        self._sync_names()
        self._write(self._manifest_place(name), BytesIO(data))
        self._sync_names()

    def _sync_names(self) -> None:
        """Bring the names of new files onto the disk."""
        for directory in {*self._renamed, *(each.parent for each in self._renamed)}:
            sync_directory(directory)
        self._renamed.clear()

    def _manifest_bytes(self, name: str) -> bytes | None:
        try:
            with _open_regular(self._manifest_place(name)) as file:
                return file.read(MOST_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BackupRefused(
                f"Cannot read the manifest of {name} in {self.path}: {error.strerror}."
            ) from error

    def remove_remains(self) -> None:
        for path in (self.path / "new").iterdir():
            path.unlink()

    def delete_manifest(self, name: str) -> None:
        self._manifest_place(name).unlink(missing_ok=True)
        sync_directory(self.path / "snapshots")


def _open_regular(path: Path) -> BinaryIO:
    """Open a plain file. Raises OSError for links, and for devices and the like."""
    descriptor = os.open(path, _READ)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is no plain file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        with suppress(OSError):
            os.close(descriptor)
        raise
