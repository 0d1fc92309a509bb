"""Vel's sandbox as a backend of deepagents, with file transfer and the framework's error codes.

All access uses descriptors below the directory; see `sandbox.directories.beneath`.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shlex
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from sandbox.cancellation import Cancellation
from sandbox.create import create_sandbox
from sandbox.errors import (
    FileAccessFailed,
    FileError,
    FileMissing,
    FileTooLarge,
    IsDirectory,
    NotDirectory,
    NotRegularFile,
    PathRefused,
    ReadOnlyPath,
    SandboxSetupError,
)
from sandbox.interop.places import Places
from sandbox.result import ExecutionResult

try:
    from deepagents.backends.protocol import (
        DeleteResult,
        EditResult,
        ExecuteResponse,
        FileDownloadResponse,
        FileUploadResponse,
        GlobResult,
        GrepResult,
        LsResult,
        ReadResult,
        WriteResult,
    )
    from deepagents.backends.sandbox import BaseSandbox
except ImportError as error:
    raise ImportError(
        "sandbox.interop.deepagents needs deepagents 0.7, which is an optional extra: "
        "pip install 'vel[deepagents]'"
    ) from error

_Result = TypeVar("_Result", ReadResult, EditResult, DeleteResult, LsResult, GrepResult, GlobResult)
_Found = TypeVar("_Found", GrepResult, GlobResult)

DEFAULT_TIMEOUT = 120
"""In seconds, the default of deepagents."""

DEFAULT_MAX_OUTPUT_CHARS = 1_000_000
"""deepagents itself moves an output that is too long for the model into a file."""

COULD_NOT_RUN_EXIT_CODE = 126
"""The exit code of a shell for a program that it cannot start."""

_ABOUT_SKILLS = (
    " Skills are in /skills (read-only). Where a skill names /sandbox/workspace, /sandbox/outputs, "
    "/sandbox/shared or /sandbox/user_uploads, use your working directory."
)

_FILE_OPERATION_CHARS = 8 * 1024**2
"""The longest output of a script of deepagents is a page of 500 KiB, escaped as JSON."""


class _FileOperations(BaseSandbox):
    """Runs deepagents' ls, read, write, edit, delete, grep and glob as scripts in the sandbox.

    This is a separate class because the output of these scripts is data, which `max_output_chars`
    must not cut.
    """

    def __init__(self, backend: LocalExecutionBackend) -> None:
        self._backend = backend

    @property
    def id(self) -> str:
        return self._backend.id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return self._backend.run(command, timeout, _FILE_OPERATION_CHARS)

    async def aexecute(
        self,
        command: str,
        *,
        timeout: int | None = None,  # noqa: ASYNC109 - deepagents' signature
    ) -> ExecuteResponse:
        return await self._backend.arun(command, timeout, _FILE_OPERATION_CHARS)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return self._backend.upload_files(files)

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return self._backend.download_files(paths)


class LocalExecutionBackend(BaseSandbox):
    """Backend of deepagents that runs an agent's commands in Vel's sandbox.

    `root_dir` is the agent's working directory. Paths are the same in every tool and command:
    `root_dir` has its own (resolved) path on the host, and /tmp is private to this backend.
    `skills_dir` is /skills and /sandbox/skills, read-only. Commands cannot write other files of the
    host, and they have no network. Pass `instructions` to the model, because deepagents does not
    tell it the path of `root_dir`.

    Relative paths of file tools start in `root_dir`, and searches without a path search it.

    A missing `root_dir` is created. `timeout` is the wall time of a command in seconds, at most
    600. `max_output_chars` limits the text of one command. Raises `SandboxUnavailable` if this host
    cannot sandbox (commands never run without a sandbox) and `SandboxSetupError` for a directory
    that commands must not get: /, home directories, system directories, directories of root.

    The backend is thread-safe. A cancelled `aexecute` kills its command. /tmp is removed by
    `close`, when the object is deleted, and at the end of the process.
    """

    def __init__(
        self,
        root_dir: str | Path,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        max_output_chars: int = DEFAULT_MAX_OUTPUT_CHARS,
        skills_dir: str | Path | None = None,
    ) -> None:
        if max_output_chars < 1:
            raise ValueError(f"max_output_chars must be 1 or more, got {max_output_chars}")
        if not timeout > 0:
            raise ValueError(f"timeout must be more than 0 seconds, got {timeout}")
        base = create_sandbox(str(root_dir), timeout=timeout)
        self._places = Places(base.policy, skills_dir, base.guard)
        policy = self._places.policy
        kept = min(max(_FILE_OPERATION_CHARS, 4 * max_output_chars), policy.limits.output_flood)
        # create_sandbox chose the class for this platform; use it again with more directories.
        limited = replace(policy, limits=replace(policy.limits, output=kept))
        self._sandbox = type(base)(limited, guard=base.guard)
        self._max_output_chars = max_output_chars
        self._files = _FileOperations(self)
        digest = hashlib.sha256(str(self.root_dir).encode("utf-8", "surrogateescape"))
        self._id = f"vel-{digest.hexdigest()[:16]}"

    @property
    def id(self) -> str:
        """The same id for the same `root_dir`, in every process."""
        return self._id

    @property
    def root_dir(self) -> Path:
        """The resolved directory in which commands start."""
        return self._places.root

    @property
    def instructions(self) -> str:
        """A paragraph for the system prompt: the directories that the agent can use."""
        skills = _ABOUT_SKILLS if self._places.has_skills else ""
        return (
            f"Your working directory is {self.root_dir}. Commands start there. File tools need "
            f"absolute paths: the file notes.md in the working directory is "
            f"{self.root_dir}/notes.md, not /notes.md. Use /tmp for temporary files.{skills} "
            "You cannot write to other directories."
        )

    def close(self) -> None:
        """Remove this backend's /tmp. Call it when no command runs, and stop using the backend."""
        self._places.close()

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a shell command (bash) and wait for it.

        The exit code is the command's own; 124 at the time limit (`timeout` in seconds, at most
        600); 126 if the command could not be run, and the output is then the reason.
        """
        return self.run(command, timeout, self._max_output_chars)

    async def aexecute(
        self,
        command: str,
        *,
        timeout: int | None = None,  # noqa: ASYNC109 - deepagents' signature
    ) -> ExecuteResponse:
        return await self.arun(command, timeout, self._max_output_chars)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write each file into one of the agent's directories, with its parent directories.

        Nothing is written through a link of a command, or outside the directories.
        """
        return [
            FileUploadResponse(path=path, error=self._upload_error(path, content))
            for path, content in files
        ]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read regular files of at most 64 MiB from the agent's directories."""
        return [self._download(path) for path in paths]

    def ls(self, path: str) -> LsResult:
        start = self._places.resolve(path)
        return self._listed(self._files.ls(start), start)

    async def als(self, path: str) -> LsResult:
        start = self._places.resolve(path)
        return self._listed(await self._files.als(start), start)

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        path = self._places.resolve(file_path)
        return self._advised(self._files.read(path, offset, limit), path)

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        path = self._places.resolve(file_path)
        return self._advised(await self._files.aread(path, offset, limit), path)

    def write(self, file_path: str, content: str) -> WriteResult:
        path = self._places.resolve(file_path)
        return self._refused_write(path) or self._files.write(path, content)

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        path = self._places.resolve(file_path)
        return self._refused_write(path) or await self._files.awrite(path, content)

    def edit(
        self, file_path: str, old_string: str, new_string: str, replace_all: bool = False
    ) -> EditResult:
        path = self._places.resolve(file_path)
        return self._advised(self._files.edit(path, old_string, new_string, replace_all), path)

    async def aedit(
        self, file_path: str, old_string: str, new_string: str, replace_all: bool = False
    ) -> EditResult:
        path = self._places.resolve(file_path)
        result = await self._files.aedit(path, old_string, new_string, replace_all)
        return self._advised(result, path)

    def delete(self, file_path: str) -> DeleteResult:
        path = self._places.resolve(file_path)
        return self._advised(self._files.delete(path), path)

    async def adelete(self, file_path: str) -> DeleteResult:
        path = self._places.resolve(file_path)
        return self._advised(await self._files.adelete(path), path)

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> GrepResult:
        start = self._places.resolve(path)
        found = self._files.grep(pattern, start, glob, max_count=max_count)
        if found.matches == []:
            found = self._missing(start) or found
        return self._matched(found, start)

    async def agrep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> GrepResult:
        start = self._places.resolve(path)
        found = await self._files.agrep(pattern, start, glob, max_count=max_count)
        if found.matches == []:
            found = await asyncio.to_thread(self._missing, start) or found
        return self._matched(found, start)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        start = self._places.resolve(path)
        return self._matched(self._files.glob(pattern, start), start)

    async def aglob(self, pattern: str, path: str | None = None) -> GlobResult:
        start = self._places.resolve(path)
        return self._matched(await self._files.aglob(pattern, start), start)

    def run(
        self,
        command: str,
        timeout: float | None,
        max_chars: int,
        cancel: Cancellation | None = None,
    ) -> ExecuteResponse:
        """Run a command like `execute`, with another output limit and optional cancellation."""
        try:
            running = self._sandbox.start(in_one_stream(command), timeout=timeout, cancel=cancel)
            result = running.wait()
        except SandboxSetupError as error:
            return ExecuteResponse(output=f"Error: {error}", exit_code=COULD_NOT_RUN_EXIT_CODE)
        output, cut = combined_output(result, max_chars)
        return ExecuteResponse(output=output, exit_code=result.exit_code, truncated=cut)

    async def arun(self, command: str, seconds: float | None, max_chars: int) -> ExecuteResponse:
        """Call `run` in a thread. Cancelling the task kills the command."""
        cancel = Cancellation()
        try:
            return await asyncio.to_thread(self.run, command, seconds, max_chars, cancel)
        except asyncio.CancelledError:
            cancel.cancel()
            raise

    def _refused_write(self, path: str) -> WriteResult | None:
        advice = self._places.advice(path)
        return WriteResult(error=f"Failed to write file '{path}': {advice}") if advice else None

    def _advised(self, result: _Result, path: str) -> _Result:
        """Add the names of the agent's directories to an error for a path outside of them."""
        advice = self._places.advice(path) if result.error else ""
        return replace(result, error=f"{result.error}. This path is {advice}") if advice else result

    def _listed(self, result: LsResult, path: str) -> LsResult:
        entries = self._with_own_paths(result.entries)
        return self._advised(replace(result, entries=entries), path)

    def _matched(self, result: _Found, path: str) -> _Found:
        return self._advised(replace(result, matches=self._with_own_paths(result.matches)), path)

    def _with_own_paths(self, found: list[Any] | None) -> list[Any] | None:
        if found is None:
            return None
        return [entry | {"path": self._places.shown(entry["path"])} for entry in found]

    def _missing(self, path: str) -> GrepResult | None:
        """Return deepagents' error if `path` is missing, instead of an empty result of grep."""
        tested = self._files.execute(f"test -e {shlex.quote(path)}")
        return GrepResult(error=f"Path '{path}': path_not_found") if tested.exit_code == 1 else None

    def _upload_error(self, path: str, content: bytes) -> str | None:
        try:
            write_file(self._places, path, content)
        except FileError as error:
            return transfer_error(error)
        return None

    def _download(self, path: str) -> FileDownloadResponse:
        try:
            content = read_file(self._places, path)
        except FileError as error:
            return FileDownloadResponse(path=path, error=transfer_error(error))
        return FileDownloadResponse(path=path, content=content)


_NOTE = "\n[... output cut here: {limit:,} characters are kept ...]\n"


def in_one_stream(command: str) -> str:
    """Return a shell command that also writes its standard error to standard output, in order.

    The redirection is on a separate line, so that syntax errors appear in the same stream.
    """
    return f"exec 2>&1\n{command}"


def combined_output(result: ExecutionResult, limit: int) -> tuple[str, bool]:
    """Return (output, whether it was cut). The text has at most `limit` characters.

    The start and the end of a long output are kept, with a note in between.
    """
    text = result.stdout + result.stderr
    if len(text) <= limit:
        return text, result.truncated
    note = _NOTE.format(limit=limit)
    room = limit - len(note)
    if room < 2:
        return text[:limit], True
    head = room // 2
    return text[:head] + note + text[head - room :], True


MAX_TRANSFER_BYTES = 64 * 1024**2
"""The limit for one file, because transfers are kept in this process's memory."""

_CODES: tuple[tuple[type[FileError], str], ...] = (
    (FileMissing, "file_not_found"),
    (IsDirectory, "is_directory"),
    (NotDirectory, "invalid_path"),
    (PathRefused, "invalid_path"),
    (NotRegularFile, "permission_denied"),
    (ReadOnlyPath, "permission_denied"),
    (FileAccessFailed, "permission_denied"),
)


def transfer_error(error: FileError) -> str:
    """Return the framework's code for `error`, or the error's text if there is no code."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), str(error))


def read_file(places: Places, path: str) -> bytes:
    """Return the bytes of a regular file that its owner may read. Raises `FileError`."""
    backend, inner = places.locate(path)
    with backend.open_file(inner) as opened:
        # A root worker could read every file; respect the permissions that commands have set.
        if not os.fstat(opened.stream.fileno()).st_mode & (stat.S_IRUSR | stat.S_IROTH):
            raise FileAccessFailed("not readable. Change its permissions with chmod.", path)
        content = opened.stream.read(MAX_TRANSFER_BYTES + 1)
    if len(content) > MAX_TRANSFER_BYTES:
        raise FileTooLarge(f"larger than {MAX_TRANSFER_BYTES:,} bytes. Split it.", path)
    return content


def write_file(places: Places, path: str, content: bytes) -> None:
    """Create or replace a file in one step, with its parents. Raises `FileError`."""
    backend, inner = places.locate(path)
    backend.write_bytes(inner, content)
