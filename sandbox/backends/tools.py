"""Implementation of the agent's six file tools on the methods that every backend has."""

from __future__ import annotations

import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import asdict

from sandbox import paths
from sandbox.backends.editing import replace_text
from sandbox.backends.limits import MAX_DEPTH, FileLimits, WalkLimit
from sandbox.backends.names import meant, shown
from sandbox.backends.patterns import LinePattern
from sandbox.backends.protocol import (
    ABSENT,
    Entry,
    FileBackend,
    FileStat,
    Listing,
    OpenedFile,
    Result,
)
from sandbox.backends.results import (
    changed,
    encoded,
    entry_result,
    fitting,
    located,
    reports_errors,
    search_result,
)
from sandbox.backends.search import Grep, find_files
from sandbox.backends.window import read_window, require_text
from sandbox.errors import FileChanged, FileError, FileMissing, FileTooLarge


class FileTools(ABC):
    """Base class of backends. Subclasses define stat, open_file, list_directory and write_bytes."""

    supports_execute: bool = False
    """Whether the backend also has execute() and execute_python()."""

    supports_write: bool = True
    """Whether the backend can be written."""

    has_own_tools: bool = False
    """Whether the backend implements the six tools itself, instead of inheriting them."""

    cwd: str = "/"
    """The absolute path of the directory in which relative paths start."""

    limits: FileLimits = FileLimits()
    """The limits of one call."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    @abstractmethod
    def stat(self, path: str) -> FileStat | None: ...

    @abstractmethod
    def open_file(self, path: str) -> OpenedFile: ...

    @abstractmethod
    def list_directory(self, path: str, *, sizes: bool = True) -> Listing: ...

    @abstractmethod
    def write_bytes(self, path: str, data: bytes, *, if_version: str | None = None) -> None: ...

    def resolve(self, path: str) -> str:
        return shown(paths.normalise(meant(path), self.cwd))

    @reports_errors
    def ls(self, path: str = "/") -> Result:
        """List a directory, sorted by name: first directories, then files, then other entries.

        Links are listed as links. A name that is not UTF-8 has no path. Invisible characters are
        written as escapes, here and in all other results.
        """
        path = self.resolve(path)
        listing = self.list_directory(path)
        entries = sorted(listing.entries, key=lambda entry: (entry.type, entry.name))
        shown = fitting(
            entries[: self.limits.listing],
            lambda entry: len(entry.path.encode()) + len(entry.name.encode()),
            self.limits.output,
        )
        result = {"path": path, "entries": [entry_result(entry) for entry in shown]}
        if listing.truncated or len(shown) < len(entries):
            note = "there are more entries: find them by their names with glob"
            return {**result, "truncated": True, "note": note}
        return {**result, "truncated": False}

    @reports_errors
    def read_file(
        self, path: str, offset: int = 0, limit: int = 100, line_offset: int = 0
    ) -> Result:
        """Return the numbered lines from `offset` to `offset + limit` of a UTF-8 text file.

        `content` ends after 50,000 bytes and cuts lines at 2,000 characters; `note` reports a cut
        and how to read on. With `line_offset`, the first line starts at this character and is cut
        only at the end of the content. `total_lines` is None for files over 64 MiB. `has_more` says
        whether more lines follow, or the rest of a line that was cut.
        """
        path = self.resolve(path)
        with self.open_file(path) as opened, located(path):
            window = read_window(
                opened.stream,
                opened.stat.size,
                offset,
                limit,
                self.limits,
                line_offset,
                commands=opened.commands,
            )
        result: Result = {
            "path": path,
            "content": "\n".join(window.lines),
            "lines_returned": len(window.lines),
            "total_lines": window.total_lines,
            "offset": offset,
            "has_more": window.has_more,
        }
        if line_offset:
            result["line_offset"] = line_offset
        return result if window.note is None else {**result, "note": window.note}

    @reports_errors
    def write_file(self, path: str, content: str, *, expected_hash: str | None = None) -> Result:
        """Create or replace a text file in one step, with its parent directories.

        `expected_hash` is the SHA-256 of the content that the agent last read. With it, a file that
        has changed or was deleted is not written; with ABSENT, a file that exists is not written.
        """
        path = self.resolve(path)
        with located(path):
            data = encoded(content, self.limits.edit)
        with self._lock:
            version = None
            if expected_hash is not None:
                version = (
                    self._require_hash(path, expected_hash) if expected_hash != ABSENT else ABSENT
                )
            self.write_bytes(path, data, if_version=version)
        lines = content.count("\n") + (not content.endswith("\n") and content != "")
        return {"status": "ok", "path": path, "lines": lines, "size_bytes": len(data)}

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
        """Replace `old_text`, which must appear once, or all occurrences with `replace_all`.

        `lines_changed` counts the touched lines. A concurrent change is an error and is never
        overwritten. `expected_hash` is as in write_file.
        """
        path = self.resolve(path)
        with self._lock, located(path):
            with self.open_file(path) as opened:
                if opened.stat.size > self.limits.edit:
                    advice = "Use a command." if opened.commands else "Write smaller files."
                    raise FileTooLarge(
                        f"{opened.stat.size} bytes; edit_file takes {self.limits.edit}. {advice}"
                    )
                data = opened.stream.read(self.limits.edit + 1)
                version, commands = opened.stat.version, opened.commands
            if expected_hash is not None and hashlib.sha256(data).hexdigest() != expected_hash:
                raise changed(path)
            require_text(data, len(data), commands=commands)
            edit = replace_text(
                data.decode(),
                old_text,
                new_text,
                replace_all=replace_all,
                max_length=self.limits.edit,
            )
            self.write_bytes(path, encoded(edit.text, self.limits.edit), if_version=version)
        return {
            "status": "ok",
            "path": path,
            "lines_changed": edit.lines_changed,
            "replacements": edit.replacements,
        }

    @reports_errors
    def glob(self, pattern: str, path: str | None = None) -> Result:
        """Return the paths of matching files below `path` (default: `cwd`), sorted, at most 1,000.

        `*` matches within a name, `**` spans directories. For an absolute pattern, `path` is not
        used. Links are not followed; .git and node_modules are searched only if they are named.
        """
        walk_limit = WalkLimit(self.limits)
        found = find_files(self, pattern, path, walk_limit, self.limits.glob_matches)
        shown = fitting(found, lambda path: len(path.encode()), self.limits.output)
        result = {"pattern": pattern, "matches": shown, "count": len(shown)}
        return search_result(result, walk_limit, more=len(shown) < len(found))

    @reports_errors
    def grep(
        self, pattern: str, path: str = "/", include: str | None = None, ignore_case: bool = False
    ) -> Result:
        """Return the first 100 lines that match an RE2 pattern, in a directory or in one file.

        `include` is a glob for the name, or with a slash for the path below `path`. Binary
        files, links, .git and node_modules are left out. `total_matches` stops at 1,000;
        `truncated` says whether there are more matches than `matches` has.
        """
        walk_limit = WalkLimit(self.limits)
        search = Grep(LinePattern(pattern, ignore_case=ignore_case), self.limits, walk_limit)
        start = self.resolve(path)
        found = search.run(self, start, include)
        matches = fitting(
            found,
            lambda match: len(match.file.encode()) + len(match.content.encode()),
            self.limits.output,
        )
        result: Result = {
            "pattern": pattern,
            "path": start,
            "files_searched": search.files_searched,
            "matches": [asdict(match) for match in matches],
            "total_matches": search.total,
        }
        return search_result(result, walk_limit, more=search.total > len(matches))

    def content_hash(self, path: str) -> str:
        """Return the SHA-256 of the file in hex. Raises FileError; FileTooLarge over 64 MiB.

        Call it before reading the file, so that a later check detects a change in between.
        """
        return self._hash_and_version(self.resolve(path))[0]

    def read_bytes(self, path: str, max_bytes: int) -> bytes:
        """Return the whole file. Raises FileError; FileTooLarge if it has more than `max_bytes`."""
        path = self.resolve(path)
        with self.open_file(path) as opened:
            data = opened.stream.read(max_bytes + 1)
            if len(data) > max_bytes:
                raise FileTooLarge(
                    f"{opened.stat.size} bytes; at most {max_bytes} are accepted here.", path
                )
            return data

    def walk(
        self,
        path: str,
        walk_limit: WalkLimit,
        *,
        skip: Collection[str] = (),
        depth: int | None = None,
    ) -> Iterator[Entry]:
        """Yield all entries below a directory, depth first and sorted; see FileBackend.walk."""
        levels = [iter(self._children(self.resolve(path), walk_limit))]
        while levels:
            entry = next(levels[-1], None)
            if entry is None:
                levels.pop()
                continue
            yield entry
            if entry.type != "directory" or entry.name in skip or not entry.addressable:
                continue
            if depth is not None and len(levels) >= depth:
                continue
            if len(levels) >= MAX_DEPTH:
                walk_limit.cut_short(f"directories nested deeper than {MAX_DEPTH} were left out")
                continue
            levels.append(iter(self._children(entry.path, walk_limit)))

    def _children(self, path: str, walk_limit: WalkLimit) -> list[Entry]:
        try:
            listing = self.list_directory(path, sizes=False)
        except FileError:
            return []  # removed or replaced since it was listed, or unreadable
        if listing.truncated:
            walk_limit.cut_short(f"a directory contains more than {len(listing.entries)} entries")
        return listing.entries if walk_limit.spend(entries=len(listing.entries)) else []

    def _require_hash(self, path: str, expected: str) -> str:
        """Return the version of the file. Raises FileChanged unless its SHA-256 is `expected`."""
        try:
            found, version = self._hash_and_version(path)
        except FileMissing:
            raise FileChanged(
                "deleted since you read it. Read it again; if it is still missing, create it.",
                path,
            ) from None
        if found != expected:
            raise changed(path)
        return version

    def _hash_and_version(self, path: str) -> tuple[str, str]:
        digest, left = hashlib.sha256(), self.limits.scan
        with self.open_file(path) as opened:
            while block := opened.stream.read(min(left + 1, 256 * 1024)):
                left -= len(block)
                if left < 0:
                    raise FileTooLarge(f"{opened.stat.size} bytes: too large to compare.", path)
                digest.update(block)
            return digest.hexdigest(), opened.stat.version


class ReadThrough(FileTools):
    """Base class of backends that read another backend."""

    def __init__(self, backend: FileBackend) -> None:
        super().__init__()
        self._backend = backend
        self.cwd = backend.cwd

    def resolve(self, path: str) -> str:
        return self._backend.resolve(path)

    def stat(self, path: str) -> FileStat | None:
        return self._backend.stat(path)

    def open_file(self, path: str) -> OpenedFile:
        return self._backend.open_file(path)

    def list_directory(self, path: str, *, sizes: bool = True) -> Listing:
        return self._backend.list_directory(path, sizes=sizes)

    def walk(
        self,
        path: str,
        walk_limit: WalkLimit,
        *,
        skip: Collection[str] = (),
        depth: int | None = None,
    ) -> Iterator[Entry]:
        return self._backend.walk(path, walk_limit, skip=skip, depth=depth)
