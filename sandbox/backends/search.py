"""glob and grep for all backends, with limits that a hostile tree cannot exceed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase

from sandbox.backends.limits import FileLimits, WalkLimit
from sandbox.backends.names import meant, shown
from sandbox.backends.patterns import GlobPattern, LinePattern
from sandbox.backends.protocol import Entry, FileBackend, FileType, OpenedFile
from sandbox.backends.window import is_binary, require_not_binary
from sandbox.errors import FileError, FileMissing, InvalidRequest, NotDirectory

SKIPPED_DIRECTORIES = frozenset({".git", "node_modules"})
"""Not searched, unless the path or the pattern contains their names."""

_SAMPLE = 8192
_FOUND_BY_GLOB: tuple[FileType, ...] = ("file", "link")


@dataclass(frozen=True, slots=True)
class Match:
    file: str
    line: int
    content: str


def find_files(
    backend: FileBackend, pattern: str, path: str | None, walk_limit: WalkLimit, limit: int
) -> list[str]:
    """Return the sorted paths of files and links that match `pattern`, at most `limit`.

    An absolute pattern starts at `/`, other patterns at `path` or at the backend's `cwd`.
    """
    pattern = shown(meant(pattern))
    glob = GlobPattern(pattern)
    if pattern.startswith("/"):
        start = backend.resolve(f"/{glob.prefix}")
    else:
        base = backend.resolve(path or backend.cwd)
        if not _is_directory(backend, base):
            raise NotDirectory("a file. Give the directory that contains it.", base)
        start = backend.resolve(f"{base.rstrip('/')}/{glob.prefix}")
    try:
        if not _is_directory(backend, start):
            return []
    except FileMissing:
        return []
    found: list[str] = []
    skip = SKIPPED_DIRECTORIES - {*glob.parts, *start.split("/")}
    for entry in backend.walk(start, walk_limit, skip=skip, depth=glob.depth):
        if not walk_limit.spend():
            break
        if entry.type in _FOUND_BY_GLOB and entry.addressable:
            if not glob.matches(_relative(entry.path, start)):
                continue
            if len(found) == limit:
                walk_limit.cut_short(f"more than {limit} matches: use a narrower pattern")
                break
            found.append(entry.path)
    return sorted(found)


@dataclass(slots=True)
class Grep:
    """One search in files, and its results. `total` also counts lines that are not returned."""

    pattern: LinePattern
    limits: FileLimits
    walk_limit: WalkLimit
    files_searched: int = 0
    total: int = 0

    def run(self, backend: FileBackend, path: str, include: str | None) -> list[Match]:
        """Return the first matching lines in `path`, a file or a directory, in order of names.

        In a directory, binary and unreadable files are skipped.

        Raises:
            FileError: `path` does not exist, or is a file that is binary or unreadable.
        """
        start = backend.resolve(path)
        found: list[Match] = []
        if not _is_directory(backend, start):
            with backend.open_file(start) as opened:
                sample = opened.stream.read(_SAMPLE)
                require_not_binary(sample, opened.stat.size, commands=opened.commands)
                self._search(opened, start, found)
            return found
        wanted = None if include is None else _include_pattern(_below(include, start))
        skip = SKIPPED_DIRECTORIES - set(start.split("/"))
        for entry in backend.walk(start, self.walk_limit, skip=skip):
            if not self.walk_limit.spend() or self.total >= self.limits.grep_total:
                break
            if not _is_wanted(entry, start, wanted):
                continue
            try:
                opened = backend.open_file(entry.path)
            except FileError:
                continue  # removed, unreadable or replaced since it was listed
            with opened:
                if not is_binary(opened.stream.read(_SAMPLE)):
                    self._search(opened, entry.path, found)
        return found

    def _search(self, opened: OpenedFile, path: str, found: list[Match]) -> None:
        opened.stream.seek(0)
        self.files_searched += 1
        for number, line, span in _matching_lines(opened.stream, self.pattern, self.walk_limit):
            self.total += 1
            if len(found) < self.limits.grep_matches:
                found.append(Match(path, number, _excerpt(line, span, self.limits)))
            if self.total >= self.limits.grep_total:
                self.walk_limit.cut_short(f"stopped at {self.total} matches: search for less")
                return


def _matching_lines(
    stream: BufferedIOBase, pattern: LinePattern, walk_limit: WalkLimit
) -> Iterator[tuple[int, bytes, tuple[int, int]]]:
    """Yield (line number from 1, line, span of the first match) for each matching line.

    A line longer than a block is searched in pieces; a match across two pieces is not found.
    """
    number, rest, reported = 1, b"", 0
    while True:
        block = stream.read(pattern.block)
        if not walk_limit.spend(size=len(block)):
            return
        text = rest + block
        ends = text.rfind(b"\n") + 1
        complete = bool(ends)
        if not block or not complete:
            ends = len(text)
        text, rest = text[:ends], text[ends:]
        if text:
            lines = text.removesuffix(b"\n").replace(b"\r\n", b"\n").removesuffix(b"\r")
            for index, line, span in _matches_in(lines, pattern, walk_limit):
                if number + index != reported:
                    reported = number + index
                    yield reported, line, span
            number += text.count(b"\n")
        if not block:
            return


def _matches_in(
    lines: bytes, pattern: LinePattern, walk_limit: WalkLimit
) -> Iterator[tuple[int, bytes, tuple[int, int]]]:
    position = index = counted = 0
    while position <= len(lines):
        span = pattern.search(lines, position)
        if span is None or not walk_limit.spend():
            return
        start = lines.rfind(b"\n", 0, span[0]) + 1
        end = lines.find(b"\n", span[1])
        end = len(lines) if end == -1 else end
        index += lines.count(b"\n", counted, start)
        counted = start
        yield index, lines[start:end], (span[0] - start, span[1] - start)
        position = end + 1


def _excerpt(line: bytes, span: tuple[int, int], limits: FileLimits) -> str:
    """Return the line, or the part around its match if the line is long."""
    limit = limits.grep_excerpt
    if len(line) <= limit:
        return _shown(line).strip()
    start = max(0, min(span[0] - limit // 4, len(line) - limit))
    piece = _shown(line[start : start + limit]).strip()
    return f"{'…' if start else ''}{piece}{'…' if start + limit < len(line) else ''}"


def _shown(line: bytes) -> str:
    return line.decode(errors="replace").replace("\0", "\ufffd")


def _is_wanted(entry: Entry, start: str, wanted: GlobPattern | None) -> bool:
    if entry.type != "file" or not entry.addressable:
        return False
    return wanted is None or wanted.matches(_relative(entry.path, start))


def _below(include: str, start: str) -> str:
    """Return an absolute pattern as a pattern for paths relative to `start`."""
    top = start.rstrip("/")
    return include.removeprefix(top) if include.startswith(f"{top}/") else include


def _include_pattern(include: str) -> GlobPattern:
    """Compile `include`. A pattern without a slash matches names at any depth.

    Raises `InvalidRequest` if it is empty.
    """
    if not include.strip("/"):
        raise InvalidRequest("include is empty. Use for example *.py, or leave it out.")
    include = shown(meant(include))
    return GlobPattern(include if "/" in include else f"**/{include}", split_prefix=False)


def _is_directory(backend: FileBackend, path: str) -> bool:
    """Return whether `path` is a directory, or a link to one. Raises FileMissing."""
    stat = backend.stat(path)
    if stat is None:
        raise FileMissing("no such file or directory. List its parent with ls.", path)
    if stat.type != "link":
        return stat.type == "directory"
    try:
        backend.list_directory(path, sizes=False)
    except NotDirectory:
        return False
    return True


def _relative(path: str, directory: str) -> str:
    return path[len(directory.rstrip("/")) + 1 :]
