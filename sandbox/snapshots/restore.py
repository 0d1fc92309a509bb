"""Restore a workspace to the state of a snapshot."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.directories.reopening import CHANGE, open_below, open_directory
from sandbox.snapshots.manifest import Manifest, Node, is_kept_file
from sandbox.snapshots.store import Change, SnapshotStore, compare

Owner = tuple[int, int]


@dataclass(slots=True)
class Restored:
    """The result of a restore: how many paths were written and deleted, and which failed."""

    written: int = 0
    deleted: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of path and reason."""


def restore(
    store: SnapshotStore,
    areas: Mapping[str, Path],
    now: Manifest,
    target: Manifest,
    owner: Owner | None,
) -> Restored:
    """Change the areas from the state `now` to the state `target`.

    `now` is a snapshot that the caller has just taken. Call the function with the store's lock,
    while no command runs. Parents are opened one name at a time and no link is followed, so a
    planted link affects only its own path. A path that one of the two snapshots did not keep is not
    changed, so that restoring can be undone. `owner` (uid, gid) owns written files; None means the
    process's own account. Directories without write permission get it temporarily. Contents of the
    workspace never cause an exception.
    """
    done = Restored()
    changes = []
    for change in compare(now, target):
        if "/" not in change.path:
            continue  # an area's own directory
        if _cannot_come_back(change.before):
            assert change.before is not None
            why = f"left as it is, because it could not be restored: {change.before.reason}"
            done.failed.append((change.path, why))
        else:
            changes.append(change)
    modes: dict[str, int] = {}  # of directories; set at the end, because they may forbid a write
    # First remove the obsolete paths, deepest first; then create the new ones from the top.
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
    for path in sorted(modes, reverse=True):  # the contents of a directory come before it
        with _noted(done, path), _opened(areas, path.split("/")) as directory:
            if modes[path]:
                os.fchmod(directory, modes[path])
    return done


def _cannot_come_back(node: Node | None) -> bool:
    """Return whether the current entry could not be restored after replacing it."""
    return node is not None and bool(node.reason) and node.kind != "other"


def _must_go(change: Change) -> bool:
    """Return whether to remove the current entry before writing the new one.

    Files and links are replaced in one step.
    """
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
        done.failed.append((path, f"it was removed in the meantime: {error.strerror}"))
    except OSError as error:
        done.failed.append((path, error.strerror or str(error)))


@contextmanager
def _parent(
    areas: Mapping[str, Path], path: str, modes: dict[str, int]
) -> Iterator[tuple[int, str]]:
    """Open the directory of `path` for writing, and yield it with the last name of `path`.

    Stores the original mode of the directory in `modes`.
    """
    above, _, name = path.rpartition("/")
    with _opened(areas, above.split("/")) as descriptor:
        status = os.fstat(descriptor)
        if status.st_uid == os.geteuid() and status.st_mode & CHANGE != CHANGE:
            modes.setdefault(above, stat.S_IMODE(status.st_mode))
            os.fchmod(descriptor, stat.S_IMODE(status.st_mode) | CHANGE)
        yield descriptor, name


@contextmanager
def _opened(areas: Mapping[str, Path], parts: Sequence[str]) -> Iterator[int]:
    """Open a directory of an area, without following links. Yields the descriptor."""
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
