"""A workspace's snapshots on disk: contents, lists of files, and a pointer to the last snapshot."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.directories.file_lock import FileLock
from sandbox.errors import SandboxError
from sandbox.snapshots.manifest import Manifest, Node, SnapshotLimits
from sandbox.snapshots.objects import ObjectStore
from sandbox.snapshots.scan import Scan, Stamp


@dataclass(frozen=True, slots=True)
class Change:
    """One path that was added, changed or deleted. `before` or `after` is None if there is no file.

    `path` may contain any characters, including line breaks and surrogates for invalid UTF-8.
    """

    path: str
    before: Node | None
    after: Node | None

    @property
    def what(self) -> str:
        if self.before is None:
            return "added"
        return "deleted" if self.after is None else "changed"


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    added: int = 0
    changed: int = 0
    deleted: int = 0


def compare(before: Manifest, after: Manifest) -> list[Change]:
    """Return the changes between two snapshots, sorted by path.

    A path counts as unchanged if one of the two snapshots did not scan it, or if it has the same
    size and mode in both and only one of them kept its content.
    """
    changes = []
    for path in sorted(before.nodes.keys() | after.nodes.keys()):
        old, new = before.nodes.get(path), after.nodes.get(path)
        if old == new:
            continue
        if old is None and before.cut_above(path):
            continue
        if new is None and after.cut_above(path):
            continue
        if old is not None and new is not None and _only_kept_differently(old, new):
            continue
        changes.append(Change(path, old, new))
    return changes


def count_changes(before: Manifest, after: Manifest) -> ChangeCounts:
    found = [change.what for change in compare(before, after)]
    return ChangeCounts(found.count("added"), found.count("changed"), found.count("deleted"))


def _only_kept_differently(old: Node, new: Node) -> bool:
    """Return whether only a limit caused the difference between two entries.

    Both are then the same file or directory, once within the limits and once not.
    """
    if old.kind != new.kind or bool(old.reason) == bool(new.reason):
        return False
    return old.size == new.size and old.mode == new.mode


YOUNG_SECONDS = 3600.0
"""Younger manifests are never removed: the row that names one may not be committed yet."""


class SnapshotLost(SandboxError):
    """Raised if the snapshot was pruned, or if its files are damaged."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of taking a snapshot. `base` is the digest of the previous snapshot, or "".

    If `base` is equal to `manifest`, nothing has changed and nothing was stored.
    """

    base: str
    manifest: str
    changes: ChangeCounts
    stored_bytes: int = 0
    is_complete: bool = True

    @property
    def has_changed(self) -> bool:
        return self.base != self.manifest


@dataclass(slots=True)
class _Head:
    """The last snapshot, with the stamps that show which files are unchanged."""

    manifest: Manifest
    digest: str
    stamps: Mapping[str, Stamp]
    version: tuple[int, int, int] = (0, 0, 0)


class SnapshotStore:
    """The snapshots of one workspace below `directory`, which only Vel can enter (mode 0700).

    All methods block: use them in threads, not in an event loop. `lock` excludes other processes;
    a restore also holds it.
    """

    def __init__(self, directory: Path, limits: SnapshotLimits | None = None) -> None:
        self.directory = directory
        self.limits = limits or SnapshotLimits()
        self.lock = FileLock(directory / "lock")
        self._head: _Head | None = None

    def take(self, areas: Mapping[str, Path]) -> Taken:
        """Store the changes in the areas since the last snapshot.

        Raises OSError if the store cannot be written, and LockTimeout. Contents of the workspace
        never cause an exception.
        """
        with self.lock:
            objects = self._objects()
            head = self._load_head()
            limit = self.limits.file_bytes
            scan = Scan(
                head.manifest,
                head.stamps,
                lambda source, size: objects.add(source, size, limit),
                self.limits,
            )
            scan.run(areas)
            if head.digest and scan.nodes == head.manifest.nodes:
                if scan.stamps != head.stamps:
                    self._save_head(_Head(head.manifest, head.digest, scan.stamps))
                return Taken(head.digest, head.digest, ChangeCounts())
            manifest = Manifest(scan.nodes)
            packed = manifest.packed()
            self._write(self._manifest_path(manifest.digest), packed)
            self._save_head(_Head(manifest, manifest.digest, scan.stamps))
            return Taken(
                head.digest,
                manifest.digest,
                count_changes(head.manifest, manifest),
                objects.added_bytes + len(packed),
                manifest.is_complete,
            )

    def load(self, digest: str) -> Manifest:
        """Return the list of files of a snapshot; of "", an empty list. Raises SnapshotLost."""
        if not digest:
            return Manifest({})
        if self._head is not None and self._head.digest == digest:
            return self._head.manifest
        try:
            manifest = Manifest.unpacked(self._manifest_path(digest).read_bytes())
        except FileNotFoundError:
            raise SnapshotLost("This snapshot is no longer kept.") from None
        except ValueError as error:
            raise SnapshotLost(f"This snapshot is damaged: {error}.") from error
        if manifest.digest != digest:
            raise SnapshotLost(
                "This snapshot is damaged: its list has changed since it was stored."
            )
        return manifest

    def read(self, content: str, max_bytes: int) -> bytes | None:
        """Return the first `max_bytes` of the content with the hash `content`.

        Returns None if it is no longer stored.
        """
        return self._objects().read(content, max_bytes)

    def copy_to(self, content: str, target: int) -> bool:
        """See `ObjectStore.copy_to`."""
        return self._objects().copy_to(content, target)

    def prune(self, keep: Collection[str]) -> int:
        """Remove all snapshots except those in `keep`, the last one, and those of the last hour.

        Damaged snapshots are always removed. Returns the number of freed bytes.
        """
        with self.lock:
            if not (self.directory / "manifests").is_dir():
                return 0
            kept = {*keep, self._load_head().digest}
            freed, contents = 0, set[str]()
            for path in (self.directory / "manifests").iterdir():
                status = path.stat()
                if path.name not in kept and status.st_mtime < time.time() - YOUNG_SECONDS:
                    freed += status.st_size
                    path.unlink()
                    continue
                try:
                    contents |= self.load(path.name).contents()
                except SnapshotLost:
                    freed += status.st_size
                    path.unlink()
            return freed + self._objects().remove_all_but(contents)

    def _objects(self) -> ObjectStore:
        return ObjectStore(self.directory / "objects")

    def _manifest_path(self, digest: str) -> Path:
        if not digest.isalnum():
            raise SnapshotLost(f"{digest!r} is not a snapshot.")
        return self.directory / "manifests" / digest

    @property
    def _head_path(self) -> Path:
        return self.directory / "head"

    def _load_head(self) -> _Head:
        """Return the last snapshot of any process; an empty one if none exists or it is lost."""
        try:
            status = os.stat(self._head_path)
        except FileNotFoundError:
            self._head = None
            return _Head(Manifest({}), "", {})
        version = _version(status)
        if self._head is None or self._head.version != version:
            try:
                data = json.loads(self._head_path.read_bytes())
                stamps = {path: (a, b, c, d) for path, (a, b, c, d) in data["stamps"].items()}
                digest = data["manifest"]
                self._head = None
                self._head = _Head(self.load(digest), digest, stamps, version)
            except (SnapshotLost, ValueError, KeyError, TypeError, AttributeError):
                self._head = None
                return _Head(Manifest({}), "", {})
        return self._head

    def _save_head(self, head: _Head) -> None:
        stamps = {path: list(stamp) for path, stamp in head.stamps.items()}
        data = json.dumps({"manifest": head.digest, "stamps": stamps}, separators=(",", ":"))
        self._write(self._head_path, data.encode())
        status = os.stat(self._head_path)
        head.version = _version(status)
        self._head = head

    def _write(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(f"new-{secrets.token_hex(8)}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(temporary, flags, 0o600)
        except FileNotFoundError:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(temporary, flags, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
            os.rename(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _version(status: os.stat_result) -> tuple[int, int, int]:
    return (status.st_ino, status.st_mtime_ns, status.st_size)
