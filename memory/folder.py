"""Write a memory to a folder, completely or not at all, and read untrusted folders.

A folder may come from an untrusted source. Therefore, reading opens no file outside of it, follows
no link, and has limits for everything.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from memory.errors import MemoryRefused
from memory.limits import MAX_FILE_BYTES, MAX_FILES
from memory.paths import DIRECTORIES, MAX_DEPTH, PROMPT, InvalidPath, check_path
from sandbox.backends import TreeBackend
from sandbox.backends.protocol import ABSENT, Entry
from sandbox.errors import FileError

MAX_FOLDER_BYTES = 32 * 1024**2
MAX_ENTRIES = 4 * MAX_FILES
"""Files and directories together, at any depth."""


class InvalidFolder(MemoryRefused):
    """The folder cannot be read as a memory, or cannot be written. Nothing was changed."""

    code = "invalid_folder"


@dataclass(frozen=True, slots=True)
class Folder:
    """The contents of a folder: `files` by their paths in the memory, and AGENTS.md as `prompt`.

    `prompt` is None if there is no AGENTS.md. `ignored` contains the other names at the top level,
    which do not belong to a memory.
    """

    files: dict[str, str]
    prompt: str | None
    ignored: list[str]


def write_folder(directory: Path, files: Mapping[str, str]) -> None:
    """Create `directory` with all of `files`, or with none.

    The directory must not exist or must be empty, and must not be a link. The files are written to
    a sibling directory, which then replaces it in one step.

    Args:
        files: The contents, by their paths in the memory.

    Raises:
        InvalidFolder: The directory cannot be used.
        InvalidPath: A path is invalid.
        OSError: The files cannot be written, for example because the disk is full.
    """
    target = Path(os.path.abspath(directory))
    if target.is_symlink():
        raise InvalidFolder(f"{directory} is a link: name the directory itself.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidFolder(f"{directory} already exists: name a new or an empty directory.")
    if not target.name or not target.parent.is_dir():
        raise InvalidFolder(f"There is no directory {target.parent}: create it first.")
    temporary = target.parent / f".{target.name[:100]}.{secrets.token_hex(8)}.tmp"
    temporary.mkdir()
    try:
        tree = TreeBackend(temporary)
        for path, content in files.items():
            tree.write_bytes(f"/{check_path(path)}", content.encode(), if_version=ABSENT)
        try:
            temporary.rename(target)
        except OSError as problem:
            if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            raise InvalidFolder(f"Another program has created {directory}: check it.") from None
    except BaseException:
        shutil.rmtree(temporary)
        raise


def read_folder(directory: Path) -> Folder:
    """Return the memory in `directory`.

    Raises:
        InvalidFolder: The directory does not exist, contains an invalid file, or has too many or
            too large files. The message says which.
    """
    if not directory.is_dir():
        raise InvalidFolder(f"There is no directory {directory}.")
    tree = TreeBackend(directory)
    try:
        top = tree.list_directory("/", sizes=False).entries
        known = {entry.name: entry for entry in top if entry.name in (PROMPT, *DIRECTORIES)}
        files: dict[str, str] = {}
        size = 0
        for path in _paths(tree, [known[name] for name in DIRECTORIES if name in known]):
            files[path] = _content(tree, path)
            size += len(files[path].encode())
            if len(files) > MAX_FILES or size > MAX_FOLDER_BYTES:
                raise InvalidFolder(
                    f"It contains more than {MAX_FILES:,} files or {MAX_FOLDER_BYTES:,} bytes."
                )
        prompt = None
        if PROMPT in known:
            _require(known[PROMPT], "file")
            prompt = _content(tree, PROMPT)
    except FileError as problem:
        raise InvalidFolder(str(problem)) from None
    _require_distinct(files)
    ignored = [entry.name for entry in top if entry.name not in known]
    return Folder(dict(sorted(files.items())), prompt, ignored)


def _paths(tree: TreeBackend, directories: list[Entry]) -> Iterator[str]:
    """Yield the valid paths of all files below `directories`.

    Raises `InvalidFolder` for an invalid path, a link or a special file, and over the limits.
    """
    left, seen = list(directories), 0
    while left:
        directory = left.pop()
        _require(directory, "directory")
        if directory.path.count("/") > MAX_DEPTH:
            raise InvalidFolder(f"{directory.path[1:]!r} is deeper than {MAX_DEPTH} levels.")
        for entry in tree.list_directory(directory.path, sizes=False).entries:
            seen += 1
            if seen > MAX_ENTRIES:
                raise InvalidFolder(f"It contains more than {MAX_ENTRIES:,} files and directories.")
            if entry.type == "directory" and entry.addressable:
                left.append(entry)
                continue
            _require(entry, "file")
            try:
                yield check_path(entry.path[1:])
            except InvalidPath as problem:
                raise InvalidFolder(str(problem)) from None


def _require(entry: Entry, kind: str) -> None:
    if entry.type != kind or not entry.addressable:
        raise InvalidFolder(
            f"{entry.path[1:]!r} is a {entry.type} instead of a {kind} with a plain name: "
            "links and special files are not read."
        )


def _content(tree: TreeBackend, path: str) -> str:
    try:
        return tree.read_bytes(f"/{path}", MAX_FILE_BYTES).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidFolder(f"{path} is not UTF-8 text.") from None


def _require_distinct(files: Mapping[str, str]) -> None:
    """Raise `InvalidFolder` if two paths differ only in case: some systems treat them as equal."""
    by_folded: dict[str, str] = {}
    for path in files:
        other = by_folded.setdefault(path.lower(), path)
        if other != path:
            raise InvalidFolder(f"{path} and {other} differ only in their case.")
