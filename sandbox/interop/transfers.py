"""Transfer files to and from an agent's directories, with the error codes of frameworks.

All access uses descriptors beneath the directory; see `sandbox.directories.beneath`.
"""

from __future__ import annotations

import os
import stat

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
)
from sandbox.interop.places import Places

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
    """The code for `error`, or its text if there is no code, as for a full disk."""
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
