"""Errors of the sandbox. Each message says what to do."""

from __future__ import annotations

import json
import unicodedata


class SandboxError(Exception):
    """Base of everything the sandbox raises."""


class SandboxUnavailable(SandboxError):
    """This host cannot run a sandbox. Nothing was run, and nothing falls back to running bare."""


SandboxNotAvailableError = SandboxUnavailable
"""The same error under its longer name."""


class SandboxSetupError(SandboxError):
    """The sandbox could not be set up for this command; the command did not start."""


class FileError(SandboxError):
    """A file operation that did not happen. Nothing was changed.

    `problem` says what is wrong and what to do. `path` is the agent's path; the message quotes
    it as JSON, since a name may hold line breaks and control characters.
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
        """The same error for another name of the file: its path as the caller sees it."""
        return type(self)(self.problem, path)


def _quoted(path: str) -> str:
    """`path` as JSON in which every character that a terminal obeys, or hides, is escaped."""
    return "".join(
        json.dumps(char)[1:-1] if unicodedata.category(char) in _UNSEEN else char
        for char in json.dumps(path, ensure_ascii=False)
    )


_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Controls (C1 too), marks of direction, zero-width characters, line and paragraph separators."""


class PathRefused(FileError):
    """A path that is not in the workspace, or that leads out of it."""


class FileMissing(FileError):
    """Nothing exists at this path."""


class IsDirectory(FileError):
    """The path is a directory where a file was wanted."""


class NotDirectory(FileError):
    """The path, or a part of it, is a file where a directory was wanted."""


class NotRegularFile(FileError):
    """The path is a link, FIFO, socket or device where a regular file was wanted."""


class NotText(FileError):
    """The file is binary, or not UTF-8."""


class FileTooLarge(FileError):
    """The file is larger than this operation takes."""


class FileChanged(FileError):
    """The file is not what the caller last saw."""


class ReadOnlyPath(FileError):
    """The path can be read and not written."""


class StorageFull(FileError):
    """There is no room for the data."""


class FileAccessFailed(FileError):
    """The operating system refused for another reason, which the message names."""


class InvalidRequest(FileError):
    """An argument that makes no sense: a pattern, an offset, a text to replace."""
