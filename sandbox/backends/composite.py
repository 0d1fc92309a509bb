"""One tree of several backends: the path prefix selects the backend."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

from sandbox import paths
from sandbox.backends.limits import WalkLimit
from sandbox.backends.names import meant, shown
from sandbox.backends.protocol import (
    Entry,
    ExecutingBackend,
    FileBackend,
    FileStat,
    Listing,
    OpenedFile,
    Result,
)
from sandbox.backends.tools import FileTools
from sandbox.errors import FileError, IsDirectory, SandboxUnavailable


class CompositeBackend(FileTools):
    """`default`, with other backends mounted over it: `routes` maps each path to a backend.

    The longest matching path is used. A mounted backend sees paths relative to its mount, with `/`
    for the mount itself. Results and errors have the paths of the whole tree. Directories on the
    way to a mount exist automatically. Files of `default` under a mount are hidden.

    `aside` are mounts that a search of the whole tree does not enter: material beside the user's
    files. A search that begins in them, or in another directory above them, does.

    Commands, if `default` supports them, see only the files of `default`.
    """

    def __init__(
        self,
        default: FileBackend,
        routes: Mapping[str, FileBackend],
        *,
        aside: Collection[str] = (),
    ) -> None:
        super().__init__()
        self._aside = frozenset(aside)
        self._default = default
        self._mounts = {
            shown(paths.normalise(meant(path))): backend for path, backend in routes.items()
        }
        if "/" in self._mounts:
            raise ValueError("a route for / would hide the default: pass that backend as default")
        self.cwd = default.cwd
        self.supports_execute = default.supports_execute

    def resolve(self, path: str) -> str:
        """Resolve mounts and their parents by name, all other paths with the default backend."""
        absolute = shown(paths.normalise(meant(path), self.cwd))
        if self._mount_of(absolute) or self._mounts_below(absolute):
            return absolute
        return self._default.resolve(absolute)

    def stat(self, path: str) -> FileStat | None:
        path = self.resolve(path)
        if self._mounts_below(path):
            return FileStat("directory")
        with self._inside(path) as (backend, inner):
            return backend.stat(inner)

    def open_file(self, path: str) -> OpenedFile:
        path = self.resolve(path)
        if self._mounts_below(path):
            raise IsDirectory("a directory. List it with ls.", path)
        with self._inside(path) as (backend, inner):
            return backend.open_file(inner)

    def list_directory(self, path: str, *, sizes: bool = True) -> Listing:
        path = self.resolve(path)
        below = self._mounts_below(path)
        mount = self._mount_of(path)
        try:
            with self._inside(path) as (backend, inner):
                listing = backend.list_directory(inner, sizes=sizes)
        except FileError:
            if not below:
                raise
            listing = Listing([])
        names = {_below(mounted, path)[0] for mounted in below}
        entries = [Entry(path, name, "directory") for name in names]
        for entry in listing.entries:
            moved = _moved(entry, mount)
            if moved.parent != path or moved.name not in names:
                entries.append(moved)
        return replace(listing, entries=sorted(entries, key=lambda entry: entry.name))

    def walk(
        self,
        path: str,
        walk_limit: WalkLimit,
        *,
        skip: Collection[str] = (),
        depth: int | None = None,
    ) -> Iterator[Entry]:
        path = self.resolve(path)
        below = self._mounts_below(path)
        mount = self._mount_of(path)
        try:
            with self._inside(path) as (backend, inner):
                for entry in backend.walk(inner, walk_limit, skip=skip, depth=depth):
                    moved = _moved(entry, mount)
                    if not _is_hidden(moved, below):
                        yield moved
        except FileError:
            if not below:
                raise
        for mounted in below:
            between = _below(mounted, path)
            left = None if depth is None else depth - len(between)
            nested = any(paths.is_within(mounted, other) for other in below if other != mounted)
            nested = nested or (path == "/" and mounted in self._aside)
            if nested or (left is not None and left < 1) or not set(skip).isdisjoint(between):
                continue
            yield from self.walk(mounted, walk_limit, skip=skip, depth=left)

    def write_bytes(self, path: str, data: bytes, *, if_version: str | None = None) -> None:
        path = self.resolve(path)
        if self._mounts_below(path):
            raise IsDirectory("a directory. Give the path of a file.", path)
        with self._inside(path) as (backend, inner):
            backend.write_bytes(inner, data, if_version=if_version)

    def execute(self, command: str, timeout: float | None = None) -> Result:
        return self._executing().execute(command, timeout)

    def execute_python(self, code: str, timeout: float | None = None) -> Result:
        return self._executing().execute_python(code, timeout)

    def _mount_of(self, path: str) -> str:
        """The mount that `path` is in, "" for the default."""
        found = (mount for mount in self._mounts if paths.is_within(path, mount))
        return max(found, key=len, default="")

    def _mounts_below(self, path: str) -> list[str]:
        return sorted(
            mount for mount in self._mounts if mount != path and paths.is_within(mount, path)
        )

    @contextmanager
    def _inside(self, path: str) -> Iterator[tuple[FileBackend, str]]:
        """Yield the backend for `path`, and its own name for the path.

        Errors of the backend get the path outside.
        """
        mount = self._mount_of(path)
        inner = path[len(mount) :] or "/"
        try:
            yield (self._mounts[mount] if mount else self._default), inner
        except FileError as error:
            if not mount or error.path is None:
                raise
            raise error.at(mount + error.path.removesuffix("/")) from error

    def _executing(self) -> ExecutingBackend:
        if not self.supports_execute:
            raise SandboxUnavailable(
                "these files have no sandbox: use a SandboxFilesystemBackend as the default"
            )
        return cast(ExecutingBackend, self._default)


def _below(path: str, directory: str) -> list[str]:
    """The parts of `path` after `directory`."""
    return path[len(directory.rstrip("/")) + 1 :].split("/")


def _is_hidden(entry: Entry, mounts: list[str]) -> bool:
    """Whether a mount replaces `entry`, or needs a directory where `entry` is a file."""
    return any(
        paths.is_within(entry.path, mount)
        or (entry.type != "directory" and paths.is_within(mount, entry.path))
        for mount in mounts
    )


def _moved(entry: Entry, mount: str) -> Entry:
    return replace(entry, parent=mount + entry.parent.rstrip("/")) if mount else entry
