"""Interfaces of all file backends: six tools for the agent, and methods for bytes for Vel.

The six tools (`ls` to `grep`) never raise for errors that an agent can cause. They return
`{"error": "…"}`, which says what is wrong and what to do. The methods for bytes raise
`sandbox.errors.FileError`. Paths are relative to `cwd`, or absolute in the backend's own namespace;
results have absolute paths.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from types import TracebackType
from typing import Any, Literal, Protocol

from sandbox.backends.limits import WalkLimit

FileType = Literal["file", "directory", "link", "other"]
ABSENT = ""
"""As a version or an expected hash, it means that the file must not exist."""
Result = dict[str, Any]
"""The result of a tool for the model: JSON values only."""


@dataclass(frozen=True, slots=True)
class FileStat:
    """Metadata of a file: `size` in bytes, `modified` in seconds since 1970.

    `version` changes whenever the content changes.
    """

    type: FileType
    size: int = 0
    modified: float = 0.0
    version: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in the directory `parent`. `size` is in bytes, or None if it was not requested.

    In `name`, unseen characters are escapes (`sandbox.backends.names`), which paths accept.
    `addressable` is False if the name is not UTF-8: no path can name the file.
    """

    parent: str
    name: str
    type: FileType
    size: int | None = None
    addressable: bool = True

    @property
    def path(self) -> str:
        return f"{self.parent.rstrip('/')}/{self.name}"


@dataclass(frozen=True, slots=True)
class Listing:
    """The entries of one directory, sorted by name; `truncated` if there are more."""

    entries: list[Entry]
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A regular file, open for reading at its start: a context manager.

    `commands` says whether commands can reach the file, so that errors do not advise them in vain.
    """

    stream: BufferedIOBase
    stat: FileStat
    commands: bool = True

    def __enter__(self) -> OpenedFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stream.close()


class FilesystemBackend(Protocol):
    """Interface of a program's own file storage, which an agent can work with.

    docs/guides/python.md#backends has an example.

    Paths are absolute, and `/` is the top directory. Each method returns JSON values, and
    `{"error": TEXT}` if it failed and changed nothing. Vel also uses these optional parameters:
    `line_offset` of read_file, `replace_all` of edit_file, `path` of glob, `ignore_case` of grep. A
    backend may also have `read_bytes(path, max_bytes)` and `write_bytes(path, data)` for binary
    files, and `execute(command, timeout)` and `execute_python(code, timeout)`, unless its attribute
    `supports_execute` is False.

    >>> def first_lines(files: FilesystemBackend) -> str:
    ...     return files.read_file("/notes.md", 0, 10)["content"]
    """

    def ls(self, path: str) -> Result:
        """Return {path, entries: [{name, type, path, size?}]}; a type is file or directory."""
        ...

    def read_file(self, path: str, offset: int, limit: int) -> Result:
        """Return {path, content, lines_returned, total_lines, offset, has_more}.

        The content has line numbers.
        """
        ...

    def write_file(self, path: str, content: str) -> Result:
        """Create or replace a file, and return {status, path, lines, size_bytes}."""
        ...

    def edit_file(self, path: str, old_text: str, new_text: str) -> Result:
        """Replace a text in a file, and return {status, path, lines_changed}."""
        ...

    def glob(self, pattern: str) -> Result:
        """Return {pattern, matches, count} with the paths of matching files."""
        ...

    def grep(self, pattern: str, path: str, include: str | None) -> Result:
        """Return {pattern, path, matches: [{file, line, content}], total_matches}."""
        ...


class WriteGuard(Protocol):
    """Interface of an object that decides which files of a tree may be written."""

    def refusal(self, path: str) -> str | None:
        """Return why `path` must not be written, as the end of an error message; None if it may.

        `path` is relative to the top of the tree and contains no link.
        """
        ...


class FileBackend(Protocol):
    """Interface of Vel's file backends. `FileTools` implements the six tools for subclasses."""

    supports_execute: bool
    """Whether the backend also runs commands, and so is an ExecutingBackend."""

    supports_write: bool
    """Whether files can be written. If False, every write fails with ReadOnlyPath."""

    cwd: str
    """The absolute path of the directory in which relative paths start."""

    def ls(self, path: str = "/") -> Result:
        """Return {path, entries: [{name, type, path, size?}], truncated}."""
        ...

    def read_file(
        self, path: str, offset: int = 0, limit: int = 100, line_offset: int = 0
    ) -> Result:
        """Return {path, content, lines_returned, total_lines, offset, has_more}."""
        ...

    def write_file(self, path: str, content: str, *, expected_hash: str | None = None) -> Result:
        """Create or replace a file, and return {status, path, lines, size_bytes}."""
        ...

    def edit_file(
        self,
        path: str,
        old_text: str,
        new_text: str,
        replace_all: bool = False,
        *,
        expected_hash: str | None = None,
    ) -> Result:
        """Replace a text in a file, and return {status, path, lines_changed, replacements}."""
        ...

    def glob(self, pattern: str, path: str | None = None) -> Result:
        """Return {pattern, matches, count, truncated} with the paths of matching files."""
        ...

    def grep(
        self, pattern: str, path: str = "/", include: str | None = None, ignore_case: bool = False
    ) -> Result:
        """Return {pattern, path, files_searched, matches: [{file, line, content}], …}."""
        ...

    def content_hash(self, path: str) -> str:
        """Return the SHA-256 of the file's bytes in hex, for `expected_hash`."""
        ...

    def read_bytes(self, path: str, max_bytes: int) -> bytes:
        """Return the whole file. Raises FileTooLarge if it has more than `max_bytes`."""
        ...

    def write_bytes(self, path: str, data: bytes, *, if_version: str | None = None) -> None:
        """Create or replace a file in one step, with its parent directories.

        With `if_version`, raises FileChanged unless the file still has that version; ABSENT
        requires that there is no file.
        """
        ...

    def stat(self, path: str) -> FileStat | None:
        """Return the entry at `path`, without following a link there; None if there is no entry."""
        ...

    def open_file(self, path: str) -> OpenedFile:
        """Open a regular file for reading."""
        ...

    def list_directory(self, path: str, *, sizes: bool = True) -> Listing:
        """Return the entries of a directory, up to the backend's maximum number."""
        ...

    def walk(
        self,
        path: str,
        walk_limit: WalkLimit,
        *,
        skip: Collection[str] = (),
        depth: int | None = None,
    ) -> Iterator[Entry]:
        """Yield all entries below a directory, at most `depth` levels deep; follow no links.

        Directories in `skip` are yielded but not entered. Entries beyond the limit and unreadable
        entries are omitted.
        """
        ...

    def resolve(self, path: str) -> str:
        """Return the canonical absolute path. Raises PathRefused."""
        ...


class ExecutingBackend(FileBackend, Protocol):
    """Interface of a backend that also runs commands on its files, in a sandbox.

    Results are ExecutionResult.to_dict(): stdout, stderr, exit_code, success, timed_out, ….
    `timeout` is in seconds; None means the backend's default.
    """

    def execute(self, command: str, timeout: float | None = None) -> Result: ...

    def execute_python(self, code: str, timeout: float | None = None) -> Result: ...
