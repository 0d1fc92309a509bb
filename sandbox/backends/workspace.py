"""Backend of a session's files, with the same paths for file tools as for commands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from sandbox import paths
from sandbox.backends.composite import CompositeBackend
from sandbox.backends.names import meant, shown
from sandbox.backends.protocol import FileBackend, WriteGuard
from sandbox.backends.state import StateFilesystemBackend
from sandbox.backends.tools import ReadThrough
from sandbox.backends.tree import TreeBackend
from sandbox.directories.beneath import Resolver
from sandbox.errors import ReadOnlyPath
from sandbox.linux.quota import Room
from sandbox.policy import Limits

_READ_ONLY_ADVICE = (
    "read-only. Write to /sandbox/workspace (scratch) or /sandbox/outputs (for the user)."
)


class WorkspaceBackend(CompositeBackend):
    """Backend with the areas of a workspace as `/sandbox/AREA`.

    An area is one of the directories that `sandbox.paths.AREAS` lists. skills and user_uploads are
    read-only; shared, outputs and workspace can be written. Relative paths start in
    /sandbox/workspace, `/skills` is short for /sandbox/skills, and an error for any other path
    names the correct one. File tools do not follow a link from one area into another, although
    commands do.

    Args:
        workspace_root: The directory with the areas.
        uid: The owner of written files if the host process is root. None: the owner of each
            directory.
        gid: The group of written files, like `uid`.
        directories: Other directories of the host, by the areas that they replace.
        family: The root of the parent's workspace, which provides the `FAMILY_AREAS` of a subagent.
        limits: The limits of the tree: a write beyond them raises `StorageFull`.
        guard: Protects files in the area workspace if it is a user's own directory.
    """

    def __init__(
        self,
        workspace_root: Path,
        uid: int | None = None,
        gid: int | None = None,
        *,
        directories: Mapping[str, Path] = MappingProxyType({}),
        family: Path | None = None,
        limits: Limits | None = None,
        resolver: Resolver | None = None,
        guard: WriteGuard | None = None,
    ) -> None:
        own = {area: workspace_root / area for area in paths.AREAS}
        if family is not None:
            own |= {area: family / area for area in paths.FAMILY_AREAS}
        routes: dict[str, FileBackend] = {}
        for area in paths.AREAS:
            tree = TreeBackend(
                directories.get(area, own[area]),
                uid=uid,
                gid=gid,
                resolver=resolver,
                guard=guard if area == "workspace" else None,
            )
            routes[f"{paths.SANDBOX_ROOT}/{area}"] = (
                ReadOnly(tree, _READ_ONLY_ADVICE) if area in paths.READ_ONLY_AREAS else tree
            )
        super().__init__(ReadOnly(StateFilesystemBackend()), routes)
        self._host_directories = {area: str(directories.get(area, own[area])) for area in own}
        self.cwd = paths.WORKING_DIR
        # Other directories belong to the caller and have other people's files, so they do not
        # count.
        counted = [
            directory
            for area, directory in own.items()
            if area not in paths.READ_ONLY_AREAS and directories.get(area, directory) == directory
        ]
        self._room = Room(counted, limits or Limits())

    def write_bytes(self, path: str, data: bytes, *, if_version: str | None = None) -> None:
        path = self.resolve(path)
        self._room.require(len(data), path)
        super().write_bytes(path, data, if_version=if_version)

    def resolve(self, path: str) -> str:
        return shown(paths.resolve_workspace_path(meant(path), self._host_directories))


_READ_ONLY = "read-only. Write to another directory."


class ReadOnly(ReadThrough):
    """Backend that shows another backend read-only. `advice` says where to write instead."""

    supports_write = False

    def __init__(self, backend: FileBackend, advice: str = _READ_ONLY) -> None:
        super().__init__(backend)
        self._advice = advice

    @property
    def inner(self) -> FileBackend:
        return self._backend

    def write_bytes(self, path: str, data: bytes, *, if_version: str | None = None) -> None:
        raise ReadOnlyPath(self._advice, self.resolve(path))
