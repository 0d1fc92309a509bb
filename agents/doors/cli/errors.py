"""Errors as one line for the terminal. Error classes are named by path, without their imports."""

from __future__ import annotations

import errno
from collections.abc import Callable

from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    from agents import disk_space  # imports Django, which would delay help by 0.1 s

OK = 0
FAILED = 1
USAGE = 2
WAITING = 3
LIMIT = 4
HUNG_UP = 129
INTERRUPTED = 130
TERMINATED = 143


class Signalled(BaseException):
    """A signal ended the wait at a prompt."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


class CliError(Exception):
    """A user error with its exit code. The message is one line and suggests a solution."""

    def __init__(self, message: str, *, exit_code: int = USAGE) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code


def explain(error: Exception) -> tuple[str, int]:
    """Return the message for `error`, always one line, and the exit code."""
    if not isinstance(error, CliError) and (text := disk_space.full_disk(error)):
        return text, FAILED
    for kind in type(error).__mro__:
        describe = _KNOWN.get(f"{kind.__module__}.{kind.__qualname__}")
        if describe is not None:
            message, code = describe(error)
            return " ".join(message.split()), code
    return (
        f"internal error: {type(error).__name__}: {' '.join(str(error).split())} "
        "(--debug shows the traceback)",
        FAILED,
    )


def _cli_error(error: Exception) -> tuple[str, int]:
    return str(error), getattr(error, "exit_code", USAGE)


def _refused(error: Exception) -> tuple[str, int]:
    return str(error), USAGE


def _failed(error: Exception) -> tuple[str, int]:
    return str(error), FAILED


def _os_error(error: Exception) -> tuple[str, int]:
    number = getattr(error, "errno", None)
    place = getattr(error, "filename", None)
    where = f" at {place}" if place else ""
    if number in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full{where}: make room and try again.", FAILED
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (
            f"this account has no permission to write{where}: change the owner, or set "
            "VEL_DATA_DIR to a directory of this account.",
            FAILED,
        )
    if number in (errno.ENOTDIR, errno.ENOENT) and place:
        return f"there is no {place}: check the path, or VEL_DATA_DIR.", FAILED
    return f"{getattr(error, 'strerror', None) or error}{where}", FAILED


def _database_error(error: Exception) -> tuple[str, int]:
    text = " ".join(str(error).split())
    for sign, meaning in _DATABASE_SIGNS:
        if sign in text:
            return f"{meaning} ({text})", FAILED
    return f"the database refused: {text} (vel doctor looks closer)", FAILED


_DATABASE_SIGNS = (
    ("database or disk is full", "the disk is full: make room and try again"),
    ("database is locked", "the database is locked by another process: try again, or find it"),
    ("unable to open database file", "the database cannot be opened: check its path and rights"),
    ("readonly database", "the database may not be written by this account: change its owner"),
    ("file is not a database", "the database's path names a file that is no SQLite database"),
    ("malformed", "the database is damaged: restore it from a backup"),
    ("disk I/O error", "the disk does not answer: look at the system's log"),
    ("no such table", "the database is not prepared: run `vel migrate`"),
    ("no such column", "the database was prepared by another version: run `vel migrate`"),
    ("does not exist", "the database is not there or not prepared: check DATABASE_URL"),
    ("connection failed", "the database cannot be reached: check DATABASE_URL"),
    ("could not translate host name", "the database's host is unknown: check DATABASE_URL"),
    ("server closed the connection", "the database went away: try again when it is back"),
)

_KNOWN: dict[str, Callable[[Exception], tuple[str, int]]] = {
    "agents.doors.cli.errors.CliError": _cli_error,
    "agents.services.errors.NoSpace": _failed,
    "agents.services.errors.ServiceError": _refused,
    "agents.providers.base.ProviderError": _refused,
    "sandbox.errors.SandboxError": _failed,
    "django.core.exceptions.ImproperlyConfigured": _failed,
    "django.core.management.base.CommandError": _failed,
    "django.db.utils.Error": _database_error,
    "sqlite3.Error": _database_error,
    "psycopg.Error": _database_error,
    "builtins.OSError": _os_error,
}
