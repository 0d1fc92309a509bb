"""Copy the files in /sandbox/outputs to a directory of the program.

The agent is not trusted. Reading and writing each stay in one directory, links are not copied,
names are made harmless, and all sizes are limited.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agents.models import Thread
from agents.sdk.streaming.agent_file import AgentFile
from agents.services.files.copies import blocks_of, size_of, why_left_out
from agents.services.files.thread_files import has_workspace, readable_files
from agents.services.files.workspaces import workspace_location
from agents.settings import DataSettings
from sandbox.backends import TreeBackend
from sandbox.backends.limits import FileLimits, WalkLimit
from sandbox.backends.names import meant, shown
from sandbox.backends.protocol import Entry, FileBackend
from sandbox.errors import FileError, FileTooLarge, SandboxSetupError
from sandbox.own_directory.guard import DirectoryGuard
from sandbox.own_directory.rules import FileRules
from sandbox.paths import WORKING_DIR

logger = logging.getLogger(__name__)

OUTPUTS = "/sandbox/outputs"
MAX_FILES = 1_000
MAX_BYTES = 1024**3
"""The maximum size in bytes of all copies of one session."""

Known = dict[str, tuple[str, AgentFile]]
"""Maps the path of each copied file of a session to (version, file)."""


@dataclass(frozen=True, slots=True)
class FilesPlace:
    """The places of a session's outputs on this machine. Code with them needs no database."""

    thread_id: str
    source: Path
    own_directory: Path | None
    rules: FileRules


@dataclass(frozen=True, slots=True)
class Collected:
    """The files of a session.

    `new` are the files that are new or changed since the last collection.
    """

    files: list[AgentFile]
    new: list[AgentFile]


def place_of_outputs(thread_id: str) -> FilesPlace | None:
    """Return the places of a session's outputs, None if it has no sandbox."""
    thread = Thread.objects.get(pk=thread_id)
    if not has_workspace(thread):
        return None
    location = workspace_location(thread)
    source = DataSettings.now().workspaces / thread.pk / "outputs"
    return FilesPlace(thread.pk, source, location.own_directory, location.rules)


def files_in_rows(thread_id: str) -> list[AgentFile]:
    """Return the files of a session without a sandbox, which are in the database.

    At most `MAX_FILES` are returned.
    """
    thread = Thread.objects.get(pk=thread_id)
    backend = readable_files(thread, in_workspace=False)
    problem = "It is in the database: get_state() has its content."
    return [
        AgentFile(entry.path, size_of(backend, entry), None, problem) for entry in _walk(backend)
    ]


def collect(place: FilesPlace, destination: Path | None, known: Known) -> Collected:
    """Return the files in /sandbox/outputs, copied to `destination` unless it is None.

    Blocks. At most `MAX_FILES` are returned. The directory of a session has the id of its thread as
    its name, so that no session replaces the files of another. `known` has the files of earlier
    calls, and is updated.
    """
    if not place.source.is_dir():
        return Collected([], [])
    source = TreeBackend(place.source)
    copies = _Copies(place, destination) if destination is not None else None
    found: list[AgentFile] = []
    new: list[AgentFile] = []
    for entry in _walk(source):
        version, file = _version(source, entry), known.get(entry.path)
        if file is None or file[0] != version or not _is_there(file[1]):
            made = _file(source, entry, place, copies)
            known[entry.path] = version, made
            new.append(made)
        elif copies is not None:
            copies.left -= file[1].size
        found.append(known[entry.path][1])
    for made in new:
        if made.problem:
            logger.warning("%s was not copied: %s", made.path, made.problem)
    return Collected(found, new)


class _Copies:
    """Writes the copies of one session to its directory."""

    def __init__(self, place: FilesPlace, destination: Path) -> None:
        own = place.own_directory
        self.left = MAX_BYTES
        self._root = destination
        self._below = ""
        guard = None
        for parent in (destination, *destination.parents):
            # The agent can replace parts of its directory by links, so start from the top
            # directory.
            if own is not None and parent.resolve().is_relative_to(own):
                self._root, inside = own, parent.resolve().relative_to(own)
                self._below = str(inside / destination.relative_to(parent))
                guard = DirectoryGuard(own, WORKING_DIR, place.rules)
        self._directory = f"{self._below}/{place.thread_id}".lstrip("/")
        self._guard = guard

    def write(self, source: FileBackend, path: str) -> tuple[int, str]:
        """Copy one file. Return (its size in bytes, the path of the copy). Raises `FileError`."""
        relative = path.lstrip("/")
        for part in relative.split("/"):
            if why := why_left_out(part):
                raise FileError(f"the name {part!r} is protected: {why}.", path)
        # Apply `shown` again: on the host its escapes are part of the name, without invisible
        # characters.
        target = f"/{shown(self._directory)}/{shown(relative)}"
        if self._guard is None:
            self._root.mkdir(parents=True, exist_ok=True)
        with source.open_file(path) as opened:
            self.left -= opened.stat.size
            if self.left < 0:
                raise FileTooLarge(f"the outputs have more than {MAX_BYTES:,} bytes in all.", path)
            tree = TreeBackend(self._root, guard=self._guard)
            tree.write_chunks(target, blocks_of(opened.stream, opened.stat.size, path))
        return opened.stat.size, str(self._root / self._directory / relative)


def _file(
    source: FileBackend, entry: Entry, place: FilesPlace, copies: _Copies | None
) -> AgentFile:
    path, size = OUTPUTS + entry.path, size_of(source, entry)
    if not entry.addressable:
        return AgentFile(path, size, None, "Its name is not valid UTF-8.")
    if copies is None:
        return AgentFile(path, size, str(place.source / meant(entry.path).lstrip("/")))
    try:
        size, host_path = copies.write(source, entry.path)
    except FileError as error:
        return AgentFile(path, size, None, error.problem)
    except SandboxSetupError as error:
        return AgentFile(path, size, None, str(error))
    except OSError as error:
        return AgentFile(path, size, None, f"The copy cannot be written: {error}.")
    return AgentFile(path, size, host_path)


def _walk(backend: FileBackend) -> Iterator[Entry]:
    """Yield at most `MAX_FILES` regular files. Links are omitted."""
    count = 0
    walk_limit = WalkLimit(FileLimits())
    for entry in backend.walk("/", walk_limit):
        if entry.type != "file":
            continue
        count += 1
        if count > MAX_FILES:
            logger.warning("There are more than %d files: the rest is left out.", MAX_FILES)
            return
        yield entry
    if walk_limit.cut:
        logger.warning("Not all files were found: %s.", walk_limit.cut)


def _version(backend: FileBackend, entry: Entry) -> str:
    found = backend.stat(entry.path) if entry.addressable else None
    return found.version if found is not None else ""


def _is_there(file: AgentFile) -> bool:
    return file.host_path is None or os.path.exists(file.host_path)
