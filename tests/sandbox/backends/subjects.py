"""Every backend, ready to use, for the tests that all backends must pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sandbox import paths
from sandbox.backends import (
    CompositeBackend,
    StateFilesystemBackend,
    TreeBackend,
    WorkspaceBackend,
)
from sandbox.backends.tools import FileTools
from sandbox.directories.beneath import Openat2Resolver, WalkResolver


@dataclass(frozen=True)
class Subject:
    """A backend and a directory in it that tests may fill. `host` is its path on the host."""

    backend: FileTools
    home: str
    host: Path | None = None

    def at(self, name: str) -> str:
        return f"{self.home.rstrip('/')}/{name}"

    def put(self, name: str, content: str | bytes) -> str:
        data = content.encode() if isinstance(content, str) else content
        self.backend.write_bytes(self.at(name), data)
        return self.at(name)

    def limit(self, **limits: Any) -> None:
        self.backend.limits = replace(self.backend.limits, **limits)


def in_state(_: Path) -> Subject:
    return Subject(StateFilesystemBackend(), "/")


def in_tree_by_openat2(directory: Path) -> Subject:
    return Subject(TreeBackend(directory, resolver=Openat2Resolver()), "/", directory)


def in_tree_by_walk(directory: Path) -> Subject:
    return Subject(TreeBackend(directory, resolver=WalkResolver()), "/", directory)


def in_default_of_composite(directory: Path) -> Subject:
    other = StateFilesystemBackend()
    other.write_bytes("/about.md", b"of the other mount")
    return Subject(CompositeBackend(TreeBackend(directory), {"/memory/": other}), "/docs")


def in_mount_of_composite(directory: Path) -> Subject:
    backend = CompositeBackend(StateFilesystemBackend(), {"/mnt/files": TreeBackend(directory)})
    return Subject(backend, "/mnt/files", directory)


def in_state_mount_of_composite(directory: Path) -> Subject:
    backend = CompositeBackend(TreeBackend(directory), {"/memory": StateFilesystemBackend()})
    return Subject(backend, "/memory")


def in_workspace(directory: Path) -> Subject:
    for area in paths.AREAS:
        (directory / area).mkdir()
    return Subject(WorkspaceBackend(directory), paths.WORKING_DIR, directory / "workspace")


SUBJECTS: dict[str, Callable[[Path], Subject]] = {
    "state": in_state,
    "tree by openat2": in_tree_by_openat2,
    "tree by walk": in_tree_by_walk,
    "default of a composite": in_default_of_composite,
    "mount of a composite": in_mount_of_composite,
    "state mounted in a composite": in_state_mount_of_composite,
    "workspace": in_workspace,
}

ON_DISK: dict[str, Callable[[Path], Subject]] = {
    name: SUBJECTS[name]
    for name in ("tree by openat2", "tree by walk", "mount of a composite", "workspace")
}
