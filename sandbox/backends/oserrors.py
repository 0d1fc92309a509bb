"""Conversion of errors of the operating system to FileErrors that say what to do."""

from __future__ import annotations

import errno
import stat as modes
from collections.abc import Iterator
from contextlib import contextmanager

from sandbox.errors import (
    FileAccessFailed,
    FileError,
    FileMissing,
    IsDirectory,
    NotDirectory,
    NotRegularFile,
    PathRefused,
    StorageFull,
)


def not_a_file(mode: int, path: str) -> FileError:
    if modes.S_ISDIR(mode):
        return IsDirectory("a directory. List it with ls.", path)
    return NotRegularFile("a FIFO, socket or device, not a regular file. Choose another.", path)


@contextmanager
def as_file_errors(path: str) -> Iterator[None]:
    """Raise a FileError about `path` instead of an OSError of the block."""
    try:
        yield
    except OSError as error:
        raise _file_error(error, path) from error


def _file_error(error: OSError, path: str) -> FileError:
    match error.errno:
        case errno.ENOENT:
            return FileMissing("no such file or directory. List its parent with ls.", path)
        case errno.ENOTDIR:
            return NotDirectory("it, or a part of the path, is not a directory.", path)
        case errno.EISDIR:
            return IsDirectory("a directory. Give the path of a file.", path)
        case errno.EXDEV | errno.ELOOP:
            return PathRefused(
                "a link on this path leads out of the directory, or in a circle. Use the path of "
                "the file itself.",
                path,
            )
        case errno.ENXIO:
            return not_a_file(modes.S_IFSOCK, path)
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return StorageFull("no room left. Delete files that are not needed.", path)
        case errno.EAGAIN:
            return FileAccessFailed("in use by a running command. Try again when it ended.", path)
        case _:
            return FileAccessFailed(f"{error.strerror}. Check its permissions.", path)
