"""Extraction of tar archives under the rules of the `data` filter, on every Python 3.11."""

from __future__ import annotations

import posixpath
import tarfile
from pathlib import Path


def extract(archive: tarfile.TarFile, directory: Path) -> None:
    """Extract everything, or raise an error for a member that the `data` filter refuses.

    Python 3.11.4 introduced the filter. Earlier versions check the members here, against stricter
    rules: no absolute names, no `..`, no types other than files, directories and symbolic links.
    """
    if hasattr(tarfile, "data_filter"):
        archive.extractall(directory, filter="data")
        return
    for member in archive.getmembers():
        _check(member)
    archive.extractall(directory)


def _check(member: tarfile.TarInfo) -> None:
    if not (member.isreg() or member.isdir() or member.issym()):
        raise tarfile.TarError(f"{member.name!r} has the type {member.type!r}")
    target = posixpath.join(member.name, member.linkname)
    for path in (member.name, target):
        if posixpath.isabs(path) or ".." in path.split("/"):
            raise tarfile.TarError(f"{member.name!r} leads outside: {path!r}")
    if member.mode & 0o7000:
        raise tarfile.TarError(f"{member.name!r} has the mode {member.mode:o}")
