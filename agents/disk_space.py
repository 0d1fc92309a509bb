"""Measure the free disk space, and recognise the errors of a full disk.

The setting RESERVE_BYTES has two thresholds. With less free space than the reserve, Vel refuses
new runs and uploads, so that active runs can store their results. With less than a quarter of it,
active runs wait as well, so that people can still decide, cancel and erase.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connections

from agents.settings import DataSettings, DiskSettings

KEEP_SECONDS = 1.0
"""Seconds between two calls of `statvfs`."""
WAIT_PART = 4
"""Active runs wait with less free space than the reserve divided by this number."""
DATA_DIRECTORY = "the data directory"
_PLENTY = 100_000_000
"""Bytes. With more free space, a write failed on another disk, or because no inodes are free."""
_NOTHING = 1_000_000
"""Bytes. With less free space, an I/O error of SQLite means a full disk."""
_POSTGRESQL_DISK_FULL = "53100"
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class Room:
    """The free bytes of the fullest disk that Vel writes to. `place` is its name in messages."""

    place: str
    free: int


@dataclass(slots=True)
class _Kept:
    places: tuple[tuple[str, Path], ...] = ()
    until: float = 0.0
    room: Room | None = None


_kept = _Kept()


def room() -> Room:
    """Return the free space. Calls `statvfs` at most once a second per process and disk."""
    places = _places()
    now = time.monotonic()
    if _kept.room is None or _kept.places != places or now >= _kept.until:
        # The time comes first: other threads use the old figure during the call.
        _kept.places, _kept.until = places, now + KEEP_SECONDS
        _kept.room = min((Room(name, _free(path)) for name, path in places), key=lambda r: r.free)
    return _kept.room


def forget_room() -> None:
    """Measure again at the next call of `room`."""
    _kept.room = None


def is_short(adding: int = 0) -> bool:
    """Return whether `adding` more bytes would use a part of the reserve."""
    reserve = DiskSettings.now().RESERVE_BYTES
    return reserve > 0 and room().free - adding < reserve


def is_used_up() -> bool:
    """Return whether active runs have to wait for free space."""
    reserve = DiskSettings.now().RESERVE_BYTES
    return reserve > 0 and room().free < reserve // WAIT_PART


def why_refused() -> str:
    """Return the message for a person whose request would use the reserve."""
    left = room()
    reserve = DiskSettings.now().RESERVE_BYTES
    return (
        f"The disk of {left.place} is full ({_megabytes(left.free)} left, and "
        f"{_megabytes(reserve)} are reserved for active runs). Nothing was started. Erase "
        "threads or delete other files, or ask the operator, and try again."
    )


def shortage() -> str:
    """Return a clause that names the full disk, for the middle of a sentence."""
    left = room()
    return f"the disk of {left.place} is full ({_megabytes(left.free)} left)"


def why_waiting() -> str:
    """Return the message for people who look at a run that waits for space."""
    return (
        f"This run waits for disk space: {shortage()}. It continues automatically when there is "
        "room."
    )


def full_disk(error: BaseException) -> str:
    """Return a message for a person if `error` means a full disk or a used-up quota, else "".

    Follows `__cause__`: Django wraps the errors of databases, and the file tools wrap the errors of
    the operating system. Without settings, Vel does not know its disk, and the result is empty.
    """
    cause: BaseException | None = error
    while cause is not None and settings.configured:
        if text := _of_one(cause):
            return text
        cause = cause.__cause__
    return ""


def _of_one(error: BaseException) -> str:
    if getattr(error, "sqlstate", None) == _POSTGRESQL_DISK_FULL:
        return (
            "The disk of the database server is full. Ask the operator to make room there, and "
            "try again."
        )
    if isinstance(error, OSError) and error.errno == errno.EDQUOT:
        return (
            "The disk quota of the account that Vel runs as is used up. Ask the operator to make "
            "room, and try again."
        )
    if not (_is_full_sqlite(error) or (isinstance(error, OSError) and error.errno in _FULL)):
        return ""
    plenty = max(_PLENTY, DiskSettings.now().RESERVE_BYTES)
    if room().free > plenty:
        forget_room()  # the figure may be from before the disk was full
    left = room()
    advice = "Erase threads or delete other files, or ask the operator, and try again."
    if left.free > plenty:
        return (
            "A disk of this server has no room, or no file names (inodes), left; the disk of "
            f"{left.place} has {_megabytes(left.free)} left. {advice}"
        )
    return f"The disk of {left.place} is full ({_megabytes(left.free)} left). {advice}"


def _is_full_sqlite(error: BaseException) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return False
    primary = code & 0xFF
    if primary == sqlite3.SQLITE_FULL:
        return True
    # SQLite gives these codes if it cannot create or extend its -wal and -shm files.
    return primary in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and room().free < _NOTHING


def _places() -> tuple[tuple[str, Path], ...]:
    directory = DataSettings.now().DATA_DIR
    places = [(DATA_DIRECTORY, directory)]
    database = connections["default"].settings_dict
    name = str(database["NAME"])
    in_memory = name.startswith("file:") or name == ":memory:"
    if database["ENGINE"].endswith("sqlite3") and name and not in_memory:
        parent = Path(name).parent
        if parent != directory:
            places.append(("the database", parent))
    return tuple(places)


def _free(path: Path) -> int:
    """Return the free bytes at `path`, or at its nearest parent that exists."""
    for place in (path, *path.parents):
        try:
            found = os.statvfs(place)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue
        return found.f_bavail * found.f_frsize
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def _megabytes(size: int) -> str:
    return f"{size // 1_000_000:,} MB"
