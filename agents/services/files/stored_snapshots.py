"""Snapshots for several hosts: in the storage that Django's STORAGES calls `vel`.

There, `snapshots/THREAD/` contains manifests and contents by their SHA-256. The store on the disk
of each host is a cache of them. Each fetched file is compared with its digest: the storage can lose
states, but cannot change them.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, TypeVar

from django.core.files.base import File
from django.core.files.storage import Storage, storages
from django.utils import timezone

from sandbox.errors import SandboxError
from sandbox.snapshots import Manifest, SnapshotLimits, SnapshotLost, SnapshotStore
from sandbox.snapshots.store import YOUNG_SECONDS

T = TypeVar("T")

ALIAS = "vel"
TOGETHER = 8
"""The number of parallel uploads to the storage."""


class StorageFailed(SandboxError):
    """The storage does not respond, or refuses. Another try may succeed."""


def common_storage() -> Storage:
    """Return the storage of all hosts. Raises `InvalidStorageError` if the settings name none."""
    return storages[ALIAS]


class StoredSnapshots(SnapshotStore):
    """A store whose states `publish` copies to the storage, from which it fetches missing ones."""

    def __init__(
        self, directory: Path, thread_id: str, limits: SnapshotLimits | None = None
    ) -> None:
        super().__init__(directory, limits)
        self._storage = common_storage()
        self._prefix = f"snapshots/{thread_id}"

    # To the storage ---------------------------------------------------------------------------

    def publish(self, digest: str) -> None:
        """Copy a state of this host to the storage, the manifest last.

        Raises `StorageFailed`, and `SnapshotLost` if a part of the state is no longer kept.
        """
        known = self._published()
        if digest in known:
            return
        manifest = self.load(digest)
        missing = sorted(manifest.contents() - known)
        with ThreadPoolExecutor(TOGETHER) as threads:
            list(threads.map(self._put_content, missing))
        packed = manifest.packed()
        self._put(f"manifests/{digest}", io.BytesIO(packed), len(packed))
        self._note_published([*missing, digest])

    def forget_published(self, keep: Collection[str], confirm: Callable[[], object]) -> None:
        """Remove files that these states do not need, except recent ones. Raises `StorageFailed`.

        Recent files may belong to a row that is not committed. `confirm` raises an error if the
        thread has moved to another host, which may need other files.
        """
        old = timezone.now() - timedelta(seconds=YOUNG_SECONDS)
        contents: set[str] = set()
        for digest in self._names("manifests"):
            if digest in keep or not self._is_old(f"manifests/{digest}", old):
                try:
                    contents |= self.load(digest).contents()
                except SnapshotLost:
                    continue
            else:
                confirm()
                _asked(self._storage.delete, f"{self._prefix}/manifests/{digest}")
        for digest in self._names("objects"):
            if digest not in contents and self._is_old(f"objects/{digest}", old):
                confirm()
                _asked(self._storage.delete, f"{self._prefix}/objects/{digest}")
        self._published_path.unlink(missing_ok=True)  # the next call lists the storage again

    def _put_content(self, content: str) -> None:
        try:
            with open(self._objects().path_of(content), "rb") as stream:
                self._put(f"objects/{content}", stream, os.fstat(stream.fileno()).st_size)
        except FileNotFoundError:
            raise SnapshotLost("A content of this snapshot is no longer kept.") from None

    def _put(self, name: str, stream: BinaryIO, size: int) -> None:
        location = f"{self._prefix}/{name}"
        if _asked(self._storage.exists, location):
            if _asked(self._storage.size, location) == size:
                return
            _asked(self._storage.delete, location)  # its writer died during the upload
        _asked(self._storage.save, location, File(stream, name=location))

    # From the storage -------------------------------------------------------------------------

    def load(self, digest: str) -> Manifest:
        try:
            return super().load(digest)
        except SnapshotLost:
            if not digest.isalnum():
                raise
        packed = self._get(f"manifests/{digest}")
        try:
            manifest = Manifest.unpacked(packed)
        except ValueError as error:
            raise SnapshotLost(f"This snapshot is damaged: {error}.") from error
        if manifest.digest != digest:
            raise SnapshotLost("This snapshot is damaged: its list is not the one that was kept.")
        self._write(self._manifest_path(digest), packed)
        return manifest

    def read(self, content: str, max_bytes: int) -> bytes | None:
        found = super().read(content, max_bytes)
        if found is None:
            try:
                self._fetch_content(content)
            except SnapshotLost:
                return None
            found = super().read(content, max_bytes)
        return found

    def copy_to(self, content: str, target: int) -> bool:
        """Do the same as any store, but raise `SnapshotLost` if no complete copy exists."""
        if not self._objects().path_of(content).exists():
            self._fetch_content(content)
        if not super().copy_to(content, target):
            raise SnapshotLost("A file of this snapshot is damaged.")
        return True

    def _fetch_content(self, content: str) -> None:
        path = self._objects().path_of(content)
        data = self._get(f"objects/{content}")
        if hashlib.sha256(data).hexdigest() != content:
            raise SnapshotLost("A file of this snapshot is damaged: it is not what was kept.")
        self._write(path, data)

    def _get(self, name: str) -> bytes:
        location = f"{self._prefix}/{name}"
        if not _asked(self._storage.exists, location):
            raise SnapshotLost("This snapshot is no longer kept.")

        def read() -> bytes:
            with self._storage.open(location) as stream:
                return bytes(stream.read())

        return _asked(read)

    # Names in the storage ---------------------------------------------------------------------

    @property
    def _published_path(self) -> Path:
        return self.directory / "published"

    def _published(self) -> set[str]:
        """Return the digests that this host knows to be in the storage."""
        try:
            return set(self._published_path.read_text().split())
        except FileNotFoundError:
            return set()

    def _note_published(self, digests: Iterable[str]) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._published_path, flags, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write("".join(f"{digest}\n" for digest in digests))

    def _names(self, part: str) -> list[str]:
        try:
            return list(_asked(self._storage.listdir, f"{self._prefix}/{part}")[1])
        except StorageFailed as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return []
            raise

    def _is_old(self, name: str, before: datetime) -> bool:
        modified = _asked(self._storage.get_modified_time, f"{self._prefix}/{name}")
        return bool(modified < before)


def erase_stored(thread_id: str) -> None:
    """Remove all files of a thread from the storage. Raises `StorageFailed`."""
    _erase(common_storage(), f"snapshots/{thread_id}")


def _erase(storage: Storage, location: str) -> None:
    try:
        directories, names = _asked(storage.listdir, location)
    except StorageFailed as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return
        raise
    for name in names:
        _asked(storage.delete, f"{location}/{name}")
    for name in directories:
        _erase(storage, f"{location}/{name}")


def _asked(question: Callable[..., T], *arguments: object) -> T:
    try:
        return question(*arguments)
    except Exception as error:  # each storage has its own errors
        raise StorageFailed(f"The storage failed: {type(error).__name__}: {error}") from error
