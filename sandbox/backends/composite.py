"""Backend that combines several backends into one tree: the path prefix selects the backend."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from sandbox import paths
from sandbox.backends.adapted import AdaptedBackend
from sandbox.backends.limits import WalkLimit
from sandbox.backends.names import meant, shown
from sandbox.backends.patterns import GlobPattern
from sandbox.backends.protocol import (
    Entry,
    ExecutingBackend,
    FileBackend,
    FileStat,
    FilesystemBackend,
    Listing,
    OpenedFile,
    Result,
)
from sandbox.backends.results import reports_errors
from sandbox.backends.state import StateFilesystemBackend
from sandbox.backends.tools import FileTools
from sandbox.errors import FileError, IsDirectory, SandboxSetupError, SandboxUnavailable


class CompositeBackend(FileTools):
    """Backend `default` with other backends mounted over it; `routes` maps paths to backends.

    The longest matching path is used. A mounted backend sees paths relative to its mount, with `/`
    for the mount itself. Results and errors have the paths of the whole tree. Directories on the
    way to a mount exist automatically. Files of `default` under a mount are hidden.

    `aside` lists mounts with files that are not the user's. A search that starts at `/` does not
    enter these mounts. A search that starts in another directory does.

    Each backend is one of Vel's, or any object with the six file tools (FilesystemBackend), whose
    own tools are then used for its files. Commands, if `default` supports them, see only the files
    of `default`.

    >>> files = CompositeBackend(StateFilesystemBackend(), {"/shared": StateFilesystemBackend()})
    >>> files.write_file("/shared/notes.md", "All is well.")["path"]
    '/shared/notes.md'
    """

    def __init__(
        self,
        default: FileBackend | FilesystemBackend,
        routes: Mapping[str, FileBackend | FilesystemBackend],
        *,
        aside: Collection[str] = (),
    ) -> None:
        super().__init__()
        if isinstance(aside, str) or not isinstance(aside, Collection):
            raise SandboxSetupError(f"aside must be a list of paths, got {aside!r:.80}.")
        self._aside = frozenset(aside)
        if not isinstance(routes, Mapping):
            raise SandboxSetupError(f"routes must be a dictionary, got {routes!r:.80}.")
        self._default = file_backend(default)
        self._mounts = {
            shown(paths.normalise(meant(path))): file_backend(backend)
            for path, backend in routes.items()
        }
        if "/" in self._mounts:
            raise SandboxSetupError(
                "routes: a route for / would hide the default: pass that backend as default."
            )
        self.cwd = self._default.cwd
        self.supports_execute = self._default.supports_execute

    @property
    def default(self) -> FileBackend:
        return self._default

    @property
    def routes(self) -> Mapping[str, FileBackend]:
        return dict(self._mounts)

    @reports_errors
    def read_file(
        self, path: str, offset: int = 0, limit: int = 100, line_offset: int = 0
    ) -> Result:
        given = (offset, limit, line_offset)
        result = self._own(path, lambda backend, inner: backend.read_file(inner, *given))
        return super().read_file(path, *given) if result is None else result

    @reports_errors
    def write_file(self, path: str, content: str, *, expected_hash: str | None = None) -> Result:
        result = self._own(
            path,
            lambda backend, inner: backend.write_file(inner, content, expected_hash=expected_hash),
        )
        if result is None:
            return super().write_file(path, content, expected_hash=expected_hash)
        return result

    @reports_errors
    def edit_file(
        self,
        path: str,
        old_text: str,
        new_text: str,
        replace_all: bool = False,
        *,
        expected_hash: str | None = None,
    ) -> Result:
        given = (old_text, new_text, replace_all)
        result = self._own(
            path,
            lambda backend, inner: backend.edit_file(inner, *given, expected_hash=expected_hash),
        )
        if result is None:
            return super().edit_file(path, *given, expected_hash=expected_hash)
        return result

    @reports_errors
    def glob(self, pattern: str, path: str | None = None) -> Result:
        prefix = f"/{GlobPattern(shown(meant(pattern))).prefix}"
        start = self.resolve(prefix if pattern.startswith("/") else path or self.cwd)
        found = self._adapted(start)
        if found is None:
            return super().glob(pattern, path)
        adapted, mount = found
        if pattern.startswith("/"):
            inner = pattern.removeprefix(mount) or "/"
            result = adapted.glob(inner)
        else:
            result = adapted.glob(pattern, start[len(mount) :] or "/")
        result = _with_paths(result, mount)
        if not self._mounts_below(start) or "error" in result:
            return result
        matches = [
            match
            for match in _texts(result.get("matches"))
            if not any(paths.is_within(match, one) for one in self._mounts_below(start))
        ]
        more = self._without(mount).glob(pattern, path)
        matches = sorted({*matches, *more.get("matches", ())})[: self.limits.glob_matches]
        truncated = bool(result.get("truncated")) or bool(more.get("truncated"))
        return {**result, "matches": matches, "count": len(matches), "truncated": truncated}

    @reports_errors
    def grep(
        self, pattern: str, path: str = "/", include: str | None = None, ignore_case: bool = False
    ) -> Result:
        start = self.resolve(path)
        found = self._adapted(start)
        if found is None:
            return super().grep(pattern, path, include, ignore_case)
        adapted, mount = found
        result = adapted.grep(pattern, start[len(mount) :] or "/", include, ignore_case)
        result = _with_paths(result, mount)
        if not self._mounts_below(start) or "error" in result:
            return result
        more = self._without(mount).grep(pattern, path, include, ignore_case)
        if "error" in more:
            return result
        own = result.get("matches")
        own = own if isinstance(own, list) else []
        matches = [*own, *more["matches"]]
        total = result.get("total_matches")
        total = (total if isinstance(total, int) else len(own)) + more["total_matches"]
        shown_matches = matches[: self.limits.grep_matches]
        truncated = bool(result.get("truncated")) or len(shown_matches) < total
        return {
            **result,
            "matches": shown_matches,
            "total_matches": total,
            "truncated": truncated,
        }

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

    def _own(self, path: str, call: Callable[[FileBackend, str], Result]) -> Result | None:
        """Call a tool of the backend for `path`, if the backend has tools of its own.

        Returns None for a backend whose tools are those of `FileTools`.
        """
        path = self.resolve(path)
        mount = self._mount_of(path)
        backend = self._mounts[mount] if mount else self._default
        if self._mounts_below(path) or not getattr(backend, "has_own_tools", False):
            return None
        return _with_paths(call(backend, path[len(mount) :] or "/"), mount)

    def _adapted(self, path: str) -> tuple[AdaptedBackend, str] | None:
        """Return the program's backend that contains `path`, and its mount.

        Returns None if a backend of Vel contains `path`.
        """
        mount = self._mount_of(path)
        backend = self._mounts[mount] if mount else self._default
        return (backend, mount) if isinstance(backend, AdaptedBackend) else None

    def _without(self, mount: str) -> CompositeBackend:
        """Return the same tree without the files of the backend at `mount`."""
        nothing = StateFilesystemBackend()
        if not mount:
            return CompositeBackend(nothing, self._mounts, aside=self._aside)
        routes = {**self._mounts, mount: nothing}
        return CompositeBackend(self._default, routes, aside=self._aside)

    def _mount_of(self, path: str) -> str:
        """Return the mount that contains `path`; "" if `default` contains it."""
        found = (mount for mount in self._mounts if paths.is_within(path, mount))
        return max(found, key=len, default="")

    def _mounts_below(self, path: str) -> list[str]:
        return sorted(
            mount for mount in self._mounts if mount != path and paths.is_within(mount, path)
        )

    @contextmanager
    def _inside(self, path: str) -> Iterator[tuple[FileBackend, str]]:
        """Yield the backend for `path`, and the path as that backend knows it.

        Errors of the backend get the path in the whole tree.
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


def file_backend(backend: Any) -> FileBackend:
    """Return a backend of Vel unchanged, or a program's object wrapped in an AdaptedBackend.

    Raises SandboxSetupError for an object without the six file tools.
    """
    return backend if isinstance(backend, FileTools) else AdaptedBackend(backend)


def _with_paths(result: Result, mount: str) -> Result:
    """Return a result of a mounted backend with the paths of the whole tree."""
    if not mount:
        return result
    moved = dict(result)
    if isinstance(moved.get("path"), str):
        moved["path"] = _outside(moved["path"], mount)
    matches = moved.get("matches")
    if isinstance(matches, list):
        moved["matches"] = [_moved_match(match, mount) for match in matches]
    return moved


def _moved_match(match: Any, mount: str) -> Any:
    if isinstance(match, str):
        return _outside(match, mount)
    if isinstance(match, dict) and isinstance(match.get("file"), str):
        return {**match, "file": _outside(match["file"], mount)}
    return match


def _outside(path: str, mount: str) -> str:
    inner = path if path.startswith("/") else f"/{path}"
    return mount + inner.removesuffix("/") if inner != "/" else mount


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _below(path: str, directory: str) -> list[str]:
    """Return the parts of `path` after `directory`."""
    return path[len(directory.rstrip("/")) + 1 :].split("/")


def _is_hidden(entry: Entry, mounts: list[str]) -> bool:
    """Return whether a mount replaces `entry`, or needs a directory where `entry` is a file."""
    return any(
        paths.is_within(entry.path, mount)
        or (entry.type != "directory" and paths.is_within(mount, entry.path))
        for mount in mounts
    )


def _moved(entry: Entry, mount: str) -> Entry:
    return replace(entry, parent=mount + entry.parent.rstrip("/")) if mount else entry
