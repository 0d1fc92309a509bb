"""Putting a workspace back into the state of a snapshot."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.reopening import CHANGE, open_below, open_directory
from sandbox.snapshots.changes import Change, compare
from sandbox.snapshots.manifest import Manifest, Node, is_kept_file
from sandbox.snapshots.store import SnapshotStore

Owner = tuple[int, int]


@dataclass(slots=True)
class Restored:
    """What was put back: how many paths were written and deleted, and which could not be."""

    written: int = 0
    deleted: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    """(path, why)"""


def restore(
    store: SnapshotStore,
    areas: Mapping[str, Path],
    now: Manifest,
    target: Manifest,
    owner: Owner | None,
) -> Restored:
    """Change the areas from `now`, the snapshot just taken, to `target`.

    To be called under the store's lock, while no command runs. Parents are opened one name at a
    time and no link is followed, so that a link planted in the way costs its own path only. What
    one of the two did not keep is left as it is, so that restoring can be undone. `owner` (uid,
    gid) owns what is written; None: the process's own account. Directories without write permission
    get it while this runs. Raises nothing for what is in the workspace.
    """
    done = Restored()
    changes = []
    for change in compare(now, target):
        if "/" not in change.path:
            continue  # an area itself
        if _cannot_come_back(change.before):
            assert change.before is not None
            why = f"left as it is, since it could not be brought back: {change.before.reason}"
            done.failed.append((change.path, why))
        else:
            changes.append(change)
    modes: dict[str, int] = {}  # of directories, set at the end: before, they may forbid a write
    # What must go, deepest first; then what must come, from the top.
    for change in reversed(changes):
        if change.before is not None and _must_go(change):
            with _noted(done, change.path), _parent(areas, change.path, modes) as (parent, name):
                _remove(parent, name)
                modes.pop(change.path, None)
                done.deleted += change.after is None
    for change in changes:
        node = change.after
        if node is None:
            continue
        with _noted(done, change.path), _parent(areas, change.path, modes) as (parent, name):
            if node.kind == "directory":
                _make_directory(parent, name, owner)
                modes[change.path] = node.mode
            elif is_kept_file(node):
                _write_file(store, parent, name, node, owner)
            elif node.kind == "link":
                _write_link(parent, name, node.content, owner)
            else:
                raise OSError(0, f"it was not kept: {node.reason}")
            done.written += 1
    for path in sorted(modes, reverse=True):  # what lies in a directory comes before it
        with _noted(done, path), _opened(areas, path.split("/")) as directory:
            if modes[path]:
                os.fchmod(directory, modes[path])
    return done


def _cannot_come_back(node: Node | None) -> bool:
    """Whether restoring could never be undone if what is there now were replaced."""
    return node is not None and bool(node.reason) and node.kind != "other"


def _must_go(change: Change) -> bool:
    """Whether what is there stands in the way. Kept files and links are replaced in one step."""
    assert change.before is not None
    if change.after is None:
        return True
    if change.before.kind == change.after.kind:
        return False
    return is_kept_file(change.after) or change.after.kind in ("link", "directory")


@contextmanager
def _noted(done: Restored, path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        done.failed.append((path, f"it has gone meanwhile: {error.strerror}"))
    except OSError as error:
        done.failed.append((path, error.strerror or str(error)))


@contextmanager
def _parent(
    areas: Mapping[str, Path], path: str, modes: dict[str, int]
) -> Iterator[tuple[int, str]]:
    """Open the directory of `path` for writing and note its mode; also give the last name."""
    above, _, name = path.rpartition("/")
    with _opened(areas, above.split("/")) as descriptor:
        status = os.fstat(descriptor)
        if status.st_uid == os.geteuid() and status.st_mode & CHANGE != CHANGE:
            modes.setdefault(above, stat.S_IMODE(status.st_mode))
            os.fchmod(descriptor, stat.S_IMODE(status.st_mode) | CHANGE)
        yield descriptor, name


@contextmanager
def _opened(areas: Mapping[str, Path], parts: Sequence[str]) -> Iterator[int]:
    """Open a directory of an area. No link on the way is followed."""
    area, *below = parts
    top = open_directory(areas[area])
    try:
        descriptor = open_below(top, [os.fsencode(name) for name in below])
    finally:
        os.close(top)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _remove(parent: int, name: str) -> None:
    with suppress(FileNotFoundError):
        try:
            os.unlink(name, dir_fd=parent)
        except IsADirectoryError:
            os.rmdir(name, dir_fd=parent)


def _make_directory(parent: int, name: str, owner: Owner | None) -> None:
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        pass
    descriptor = open_directory(name, parent)
    try:
        if owner is not None:
            os.fchown(descriptor, *owner)
    finally:
        os.close(descriptor)


def _write_file(
    store: SnapshotStore, parent: int, name: str, node: Node, owner: Owner | None
) -> None:
    temporary = f".vel-{secrets.token_hex(12)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=parent)
    try:
        try:
            if not store.copy_to(node.content, descriptor):
                raise OSError(0, "its content is lost or damaged")
            if owner is not None:
                os.fchown(descriptor, *owner)
            os.fchmod(descriptor, node.mode)
        finally:
            os.close(descriptor)
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=parent)
        raise


def _write_link(parent: int, name: str, target: str, owner: Owner | None) -> None:
    temporary = f".vel-{secrets.token_hex(12)}.tmp"
    os.symlink(target, temporary, dir_fd=parent)
    try:
        if owner is not None:
            os.chown(temporary, *owner, dir_fd=parent, follow_symlinks=False)
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=parent)
        raise
