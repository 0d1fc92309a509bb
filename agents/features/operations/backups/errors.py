"""Reasons for which a backup is not made, or not restored."""

from __future__ import annotations

import errno
from pathlib import Path

_ADVICE = {
    errno.ENOSPC: "Make room there, or name another directory",
    errno.EDQUOT: "Make room there, or name another directory",
    errno.EACCES: "Change its owner, or name another directory",
    errno.EPERM: "Change its owner, or name another directory",
}


class BackupRefused(Exception):
    """The operation was refused or has failed. The data of Vel is unchanged.

    The message suggests a solution.
    """


class EndUnknown(BackupRefused):
    """The connection was lost at the last step: the restore is complete, or can be undone."""


def cannot_write(place: Path, error: OSError) -> BackupRefused:
    """Return the refusal for a directory in which an operation has failed."""
    why = (error.strerror or str(error)).rstrip(".")
    advice = f" {_ADVICE[error.errno]}." if error.errno in _ADVICE else ""
    return BackupRefused(f"Cannot write to {place}: {why}.{advice}")
