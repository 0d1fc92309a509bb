"""Checks of the store of unpacked skills: only this account can change it, and it is unchanged."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from sandbox.reach import unreachable_directory
from sandbox.uids import uid_for
from skills_app.library.package import PackageFile, hash_files

_EXECUTABLE, _SCRIPT, _PLAIN = 0o555, 0o545, 0o444
"""The group's bit distinguishes a file that its source called executable from a script that is
executable only here.
"""


def mode_of(file: PackageFile) -> int:
    """Return the mode of a file. A script is executable even if its archive has no modes."""
    if file.executable:
        return _EXECUTABLE
    return _SCRIPT if file.data.startswith(b"#!") else _PLAIN


def tree_hash(package: Path) -> str:
    """Return the content hash of an unpacked package; "" if an entry is impossible in one."""
    try:
        return hash_files(_files(package, ""))
    except (OSError, ValueError):
        return ""


def _files(directory: Path, prefix: str) -> Iterator[tuple[str, bool, str]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            path = f"{prefix}{entry.name}"
            if stat.S_ISDIR(status.st_mode):
                yield from _files(Path(entry.path), f"{path}/")
                continue
            mode = stat.S_IMODE(status.st_mode)
            if not stat.S_ISREG(status.st_mode) or mode not in (_EXECUTABLE, _SCRIPT, _PLAIN):
                raise ValueError(f"{path} is no file of a package")
            descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            yield path, mode == _EXECUTABLE, digest


def check_place(store: Path) -> None:
    """Raise OSError, with advice, if another account could change the contents of `store`."""
    own = os.geteuid()
    place = store.resolve()
    status = place.stat()
    if status.st_uid != own:
        raise OSError(
            f"The store of skills {place} belongs to uid {status.st_uid}, and this process is uid "
            f"{own}: set VEL_SKILLS['STORE'] to a directory of its own."
        )
    for directory in (place, *place.parents):
        if why := _open_to_others(directory, own):
            raise OSError(
                f"The store of skills {place} is not safe: {why}, so another account could change "
                "what agents run. Change that, or set VEL_SKILLS['STORE'] to another directory."
            )
    if own == 0 and (closed := unreachable_directory(place, uid_for(0))) is not None:
        raise OSError(
            f"The store of skills {place} cannot be used as root: the accounts of sandboxes cannot "
            f"enter {closed}. Set VEL_SKILLS['STORE'] to a place like /var/lib/vel/skills."
        )


def _open_to_others(directory: Path, own: int) -> str:
    status = directory.stat()
    if status.st_uid not in (0, own):
        return f"{directory} belongs to uid {status.st_uid}"
    if status.st_mode & stat.S_ISVTX:
        return ""  # only owners move their files
    if status.st_mode & stat.S_IWOTH:
        return f"everybody may write in {directory}"
    if status.st_mode & stat.S_IWGRP and status.st_gid not in (0, os.getegid()):
        return f"the group {status.st_gid} may write in {directory}"
    return ""
