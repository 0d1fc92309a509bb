"""Search for the directories where this process can create control groups."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sandbox.linux.cgroups import CONTROLLERS, MEMORY, Cgroups

_HOST_LEAF = "vel-host"
"""A group for the processes of a delegated group: in version 2, a group whose children have limits
cannot contain processes itself."""


@dataclass(frozen=True, slots=True)
class _Mount:
    """A mounted hierarchy. `root` is the group that is visible at `point`."""

    version: int
    root: str
    point: Path
    controllers: frozenset[str]


def find_cgroups() -> Cgroups | None:
    """Return the places where this process can create control groups, or None.

    Prefers the cgroup version that can limit memory, then the one with more controllers. In version
    2, this may move the processes of a group that was delegated to this program (systemd:
    `Delegate=yes`; a container: its topmost group) into a group below it.
    """
    mounts = _mounts()
    found = [groups for groups in (_find_v2(mounts), _find_v1(mounts)) if groups is not None]
    found.sort(key=lambda groups: (MEMORY in groups.parents, len(groups.parents)))
    return found[-1] if found else None


def mounted_versions() -> tuple[int, ...]:
    return tuple(sorted({mount.version for mount in _mounts()}))


def _find_v1(mounts: list[_Mount]) -> Cgroups | None:
    """Return the group of this process in each hierarchy where it can create child groups."""
    parents: dict[str, Path] = {}
    own = _own_groups()
    for mount in mounts:
        for kind in mount.controllers.intersection(CONTROLLERS) if mount.version == 1 else ():
            directory = _place_of(own.get(kind), mount)
            if directory is not None and os.access(directory, os.W_OK | os.X_OK):
                parents[kind] = directory
    return Cgroups(1, parents) if parents else None


def _find_v2(mounts: list[_Mount]) -> Cgroups | None:
    """Return the nearest enclosing group that this process may divide."""
    for mount in mounts:
        own = _place_of(_own_groups().get(""), mount) if mount.version == 2 else None
        if own is None:
            continue
        for directory in (own, *own.parents):
            if _is_ours(directory, mount.point):
                enabled = _enable_controllers(directory)
                parents = dict.fromkeys(enabled, directory)
                return Cgroups(2, parents) if parents else None
            if directory == mount.point:
                break
    return None


def _is_ours(directory: Path, top: Path) -> bool:
    """Return whether the group was delegated to this program.

    systemd marks delegated groups; a container owns its topmost group.
    """
    if not all(
        os.access(path, os.W_OK)
        for path in (directory, directory / "cgroup.procs", directory / "cgroup.subtree_control")
    ):
        return False
    if directory == top:
        return True
    for mark in ("user.delegate", "trusted.delegate"):
        try:
            if os.getxattr(directory, mark) == b"1":
                return True
        except OSError:
            continue  # no such mark, or not visible to this account
    return False


def _enable_controllers(directory: Path) -> list[str]:
    available = (directory / "cgroup.controllers").read_text().split()
    control = directory / "cgroup.subtree_control"
    for kind in CONTROLLERS:
        if kind in available and kind not in control.read_text().split():
            _enable(kind, directory)
    return [kind for kind in CONTROLLERS if kind in control.read_text().split()]


def _enable(kind: str, directory: Path) -> None:
    for _ in range(10):
        try:
            (directory / "cgroup.subtree_control").write_text(f"+{kind}")
        except OSError as error:
            if error.errno != errno.EBUSY:
                return  # not allowed: the report names the missing controllers
            if not _move_processes(directory):
                return
        else:
            return


def _move_processes(directory: Path) -> bool:
    """Move the processes of a group into a group below it.

    Returns whether all could be moved. The caller tries again if new processes have started.
    """
    leaf = directory / _HOST_LEAF
    try:
        leaf.mkdir(exist_ok=True)
        for pid in (directory / "cgroup.procs").read_text().split():
            try:
                (leaf / "cgroup.procs").write_text(pid)
            except ProcessLookupError:
                continue
    except OSError:
        return False
    return True


def _place_of(group: str | None, mount: _Mount) -> Path | None:
    if group is None:
        return None
    path, root = PurePosixPath(group), PurePosixPath(mount.root)
    if not path.is_relative_to(root) or ".." in path.parts:
        return None  # outside the part that this process can see
    directory = mount.point / path.relative_to(root)
    return directory if directory.is_dir() else None


def _own_groups() -> dict[str, str]:
    """Return the groups of this process by controller, from /proc/self/cgroup.

    The key "" is version 2.
    """
    found: dict[str, str] = {}
    for line in _lines("/proc/self/cgroup"):
        _, kinds, group = line.split(":", 2)
        for kind in kinds.split(","):
            found[kind] = group
    return found


def _mounts() -> list[_Mount]:
    found = []
    for line in _lines("/proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            fields = before.split(" ")
            version = 2 if kind == "cgroup2" else 1
            names = frozenset(options.split(",")) if version == 1 else frozenset[str]()
            found.append(_Mount(version, _unescaped(fields[3]), Path(_unescaped(fields[4])), names))
    return found


def _lines(path: str) -> list[str]:
    """Return the lines of a kernel file with paths. A path may hold any byte except a line feed."""
    text = os.fsdecode(Path(path).read_bytes())
    return [line for line in text.split("\n") if line]


def _unescaped(field: str) -> str:
    """Return a field with the characters that the kernel writes as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)
