"""Errors of the sandbox, and the base classes of all errors that Vel raises in a program.

Each message says what to do.
"""

from __future__ import annotations

import json
import unicodedata


class AgentError(Exception):
    """The base class of the errors that Vel raises in a program.

    The message explains what to do.

    >>> try:
    ...     create_deep_agent(max_step=3)
    ... except AgentError as error:
    ...     print(error)
    create_deep_agent has no option 'max_step'; did you mean max_steps?
    """


class SetupError(AgentError):
    """Raised if an argument is wrong, or if Vel cannot work in this process as requested.

    Nothing was stored. The message names the option.

    >>> try:
    ...     create_deep_agent(sandbox="no")
    ... except SetupError as error:
    ...     print(error)
    sandbox must be True or False, got 'no'.
    """


class SandboxError(AgentError):
    """Base class of all errors of the sandbox."""


class SandboxUnavailable(SandboxError, SetupError):
    """This host cannot run a sandbox. No command was run; there is no fallback without one.

    >>> try:
    ...     files = SandboxFilesystemBackend("./work")
    ... except SandboxNotAvailableError:
    ...     files = StateFilesystemBackend()
    """


SandboxNotAvailableError = SandboxUnavailable
"""The same error with a longer name."""


class SandboxSetupError(SandboxError, SetupError):
    """The sandbox could not be set up for this command; the command did not start.

    >>> try:
    ...     create_sandbox("/etc")
    ... except SandboxSetupError as error:
    ...     print(error)
    /etc cannot be the working directory: ...
    """


class FileError(SandboxError):
    """Base class of errors of file operations. No file was changed.

    `problem` says what is wrong and what to do. `path` is the path that the agent used. The message
    quotes it as JSON, because a name may contain line breaks and control characters.
    """

    def __init__(self, problem: str, path: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = path

    def __str__(self) -> str:
        if self.path is None:
            return self.problem
        return f"{_quoted(self.path)}: {self.problem}"

    def at(self, path: str) -> FileError:
        """Return the same error with another path: that of the file as the caller knows it."""
        return type(self)(self.problem, path)


def _quoted(path: str) -> str:
    """Return `path` as JSON, with invisible and terminal control characters escaped."""
    return "".join(
        json.dumps(char)[1:-1] if unicodedata.category(char) in _UNSEEN else char
        for char in json.dumps(path, ensure_ascii=False)
    )


_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Controls (C0 and C1), direction marks, zero-width characters, line and paragraph separators."""


class PathRefused(FileError):
    """The path is not in the workspace, or leads out of it."""


class FileMissing(FileError):
    """Nothing exists at this path."""


class IsDirectory(FileError):
    """The path is a directory, but a file was expected."""


class NotDirectory(FileError):
    """The path, or a part of it, is a file, but a directory was expected."""


class NotRegularFile(FileError):
    """The path is a link, FIFO, socket or device, but a regular file was expected."""


class NotText(FileError):
    """The file is binary or not UTF-8."""


class FileTooLarge(FileError):
    """The file is too large for this operation."""


class FileChanged(FileError):
    """The file has changed since the caller last read it."""


class ReadOnlyPath(FileError):
    """The path can be read but not written."""


class StorageFull(FileError):
    """There is not enough room for the data."""


class FileAccessFailed(FileError):
    """The operating system reported another problem, which the message names."""


class InvalidRequest(FileError):
    """An argument is invalid, for example a pattern, an offset or a text to replace."""
