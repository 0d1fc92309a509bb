"""The files that code for `execute_python` can import from its working directory.

The rule is that of `sandbox.own_modules_start`, applied outside the sandbox. The list contains
every file that the code could import. It may also contain a file that is hidden by a package of the
same name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sandbox.backends.limits import FileLimits, WalkLimit
from sandbox.backends.protocol import Entry, FileBackend
from sandbox.backends.window import require_text
from sandbox.errors import FileError, FileMissing, IsDirectory, NotDirectory, NotText
from sandbox.own_modules import RESERVED
from sandbox.own_modules_start import words

_SUFFIXES = (".py", ".so")
_CHANGES_PATH = {b"sys", b"path"}


@dataclass(frozen=True, slots=True)
class ImportLimits:
    """Limits of the list of importable files.

    Attributes:
        files: The number of files in the list.
        file: The size in bytes of the largest file that is read.
        shown: The bytes of all contents that are shown together.
    """

    files: int = 200
    file: int = 1_000_000
    shown: int = 200_000


@dataclass(frozen=True, slots=True)
class ImportableFile:
    """A file that the code can import. `text` is None if it is not shown; see `reason`."""

    path: str
    text: str | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Importable:
    """The list of files that the code can import.

    `missing` says why the list may be incomplete, and is empty if it is complete. With
    `changes_path`, the code may add other directories to `sys.path`.
    """

    files: tuple[ImportableFile, ...] = ()
    missing: str = ""
    changes_path: bool = False


def importable_files(
    code: str, backend: FileBackend, directory: str, limits: ImportLimits | None = None
) -> Importable:
    """Return the files that `code` can import from its working directory. Raises FileError."""
    search = _Search(backend, limits or ImportLimits(), words(code.encode("utf-8", "replace")))
    return search.run(directory)


class _Search:
    def __init__(self, backend: FileBackend, limits: ImportLimits, named: set[bytes]) -> None:
        self._backend = backend
        self._limits = limits
        self._named = named
        self._room = limits.shown
        self._walk_limit = WalkLimit(FileLimits())
        self._missing = ""

    def run(self, directory: str) -> Importable:
        listing = self._backend.list_directory(directory, sizes=False)
        if listing.truncated:
            self._missing = f"The directory {directory} has too many files to list."
        left = list(listing.entries)
        found: list[ImportableFile] = []
        while named := {entry.name: entry for entry in left if self._is_named(entry)}:
            left = [entry for entry in left if entry.name not in named]
            for entry in (file for each in named.values() for file in self._files_of(each)):
                if len(found) == self._limits.files:
                    self._missing = f"Only {self._limits.files} files are listed."
                    return self._result(found)
                found.append(self._read(entry))
        return self._result(found)

    def _result(self, found: list[ImportableFile]) -> Importable:
        missing = self._missing or (self._walk_limit.cut or "")
        return Importable(tuple(found), missing, self._changes_path())

    def _changes_path(self) -> bool:
        return self._named >= _CHANGES_PATH

    def _is_named(self, entry: Entry) -> bool:
        name = _module_of(entry)
        if name is None or name in RESERVED:
            return False
        return self._changes_path() or name.encode() in self._named

    def _files_of(self, entry: Entry) -> Iterator[Entry]:
        is_directory = self._is_directory(entry)
        if is_directory is None:
            yield entry  # the attempt to read it then gives the reason
        elif not is_directory:
            if entry.name.endswith(_SUFFIXES):
                yield entry
        else:
            for below in self._backend.walk(entry.path, self._walk_limit, skip=("__pycache__",)):
                if below.type == "link" or below.name.endswith(_SUFFIXES):
                    yield below

    def _is_directory(self, entry: Entry) -> bool | None:
        """Return whether `entry` is a directory; None for a link that leads out of the files."""
        if entry.type == "file":
            return False
        try:
            self._backend.list_directory(entry.path, sizes=False)
        except (NotDirectory, FileMissing):
            return False
        except FileError:
            return None
        return True

    def _read(self, entry: Entry) -> ImportableFile:
        try:
            data = self._backend.read_bytes(entry.path, self._limits.file)
        except IsDirectory:
            self._missing = "Links to directories are not followed."
            return ImportableFile(entry.path, None, "It is a link to a directory.")
        except FileError as error:
            self._missing = "Not every file can be read."
            return ImportableFile(entry.path, None, f"It cannot be read: {error.problem}")
        self._named |= words(data)
        try:
            require_text(data, len(data))
        except NotText:
            return ImportableFile(entry.path, None, f"It is not text ({len(data):,} bytes).")
        if len(data) > self._room:
            return ImportableFile(entry.path, None, f"It is too long ({len(data):,} bytes).")
        self._room -= len(data)
        return ImportableFile(entry.path, data.decode())


def _module_of(entry: Entry) -> str | None:
    """Return the name with which Python could import the entry."""
    if not entry.addressable or entry.type == "other":
        return None
    name = entry.name
    if entry.type != "directory" and name.endswith(_SUFFIXES):
        # As in name.cpython-311-x86_64-linux-gnu.so.
        return name.removesuffix(".py") if name.endswith(".py") else name.partition(".")[0]
    return None if entry.type == "file" or "." in name else name
