"""Copies of a thread's files in a directory of its owner.

The agent is not trusted. Writing never leaves the directory, links are not copied, and files that
programs would execute or obey there are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path

from agents.models import Thread
from agents.services.errors import Conflict
from agents.services.files.thread_files import has_workspace, readable_files
from sandbox.backends import TreeBackend
from sandbox.backends.limits import FileLimits, WalkLimit
from sandbox.backends.names import shown
from sandbox.backends.protocol import Entry, FileBackend
from sandbox.errors import FileError, FileTooLarge
from sandbox.own_directory.names import GIT, fold, why_protected
from sandbox.paths import SANDBOX_ROOT

_BLOCK = 1024**2
_GIT_NAMES = frozenset({GIT, "head"})
"""Names that make a directory a git repository: `.git`, or `HEAD` in a bare one."""


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A file of a thread. `problem` says why there is no `copy`."""

    path: str
    size: int
    copy: Path | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ThreadCopies:
    """The files of a thread that an agent can write, below `roots`."""

    backend: FileBackend
    roots: tuple[str, ...]

    def entries(self) -> Iterator[Entry]:
        for root in self.roots:
            if self.backend.stat(root) is not None:
                for entry in self.backend.walk(root, WalkLimit(FileLimits())):
                    if entry.type == "file":
                        yield entry

    def listed(self) -> Iterator[CopiedFile]:
        """Yield the files without copies."""
        for entry in self.entries():
            yield CopiedFile(entry.path, size_of(self.backend, entry))


def files_of(thread: Thread) -> ThreadCopies:
    """Return the files of the thread. Raises `Conflict` if they are unavailable here."""
    in_workspace = has_workspace(thread)
    backend = readable_files(thread, in_workspace=in_workspace)
    if not in_workspace:
        return ThreadCopies(backend, ("/",))
    areas = ["outputs", "shared"] if thread.workspace_path else ["workspace", "outputs", "shared"]
    return ThreadCopies(backend, tuple(f"{SANDBOX_ROOT}/{area}" for area in areas))


def copy_files(files: ThreadCopies, directory: Path) -> Iterator[CopiedFile]:
    """Copy `files` into `directory`, and yield each file afterwards, also one that was not copied.

    Raises `Conflict` if the directory has entries.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise Conflict(f"{directory} is not empty: name a new directory.", code="not_empty")
    root = directory.resolve()
    tree = TreeBackend(root)
    for entry in files.entries():
        size = size_of(files.backend, entry)
        relative = entry.path.removeprefix(SANDBOX_ROOT).lstrip("/")
        try:
            _copy(files.backend, entry, tree, relative)
        except FileError as error:
            yield CopiedFile(entry.path, size, None, error.problem)
        else:
            yield CopiedFile(entry.path, size, root / relative)


def _copy(source: FileBackend, entry: Entry, tree: TreeBackend, relative: str) -> None:
    if not entry.addressable:
        raise FileError("its name is not valid UTF-8.", entry.path)
    for part in relative.split("/"):
        if why := why_left_out(part):
            raise FileError(f"the name {part!r} is protected: {why}.", entry.path)
    with source.open_file(entry.path) as opened:
        tree.write_chunks(
            f"/{shown(relative)}", blocks_of(opened.stream, opened.stat.size, entry.path)
        )


def why_left_out(name: str) -> str | None:
    """Return why programs could execute or obey a file of this name; None for other names."""
    if fold(name) in _GIT_NAMES:
        return "git would take the directory for a repository and obey its settings"
    return why_protected(name)


def blocks_of(stream: BufferedIOBase, size: int, path: str) -> Iterator[bytes]:
    """Yield the content of the file `path`. Raises `FileTooLarge` if it has more than `size` bytes.

    A file can grow after a check of its size.
    """
    while block := stream.read(min(_BLOCK, size + 1)):
        size -= len(block)
        if size < 0:
            raise FileTooLarge("it grew while it was copied.", path)
        yield block


def size_of(backend: FileBackend, entry: Entry) -> int:
    if not entry.addressable:
        return 0
    found = backend.stat(entry.path)
    return found.size if found is not None else 0
