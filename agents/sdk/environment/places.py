"""Find Vel's database, key and workspaces, in a project or without one."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from agents.data_directory import make_data_directory


def data_dir() -> Path:
    """Return the directory of Vel's database, key and workspaces.

    This is `VEL_DATA_DIR`, else /var/lib/vel for root (accounts without rights could not enter
    /root), else `vel` in the user's data directory. Raises `ImproperlyConfigured` if the directory
    is unknown, if its path is not UTF-8, or if Python does not use UTF-8 for file names.
    """
    found = _data_dir()
    if not is_utf8(found):
        raise ImproperlyConfigured(
            f"The path of the data directory is not UTF-8: {str(found)!a}. Set VEL_DATA_DIR to "
            "another directory."
        )
    return found


def is_utf8(path: Path) -> bool:
    """Return whether the path can be stored and shown as text."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _data_dir() -> Path:
    encoding = sys.getfilesystemencoding()
    if encoding != "utf-8":
        raise ImproperlyConfigured(
            f"Vel needs UTF-8 for file names, and Python uses {encoding}: set LC_ALL=C.UTF-8, and "
            "do not set PYTHONUTF8=0 or PYTHONCOERCECLOCALE=0."
        )
    given = os.environ.get("VEL_DATA_DIR", "").strip()
    base = os.environ.get("XDG_DATA_HOME", "").strip()
    try:
        if given:
            return Path(given).expanduser().absolute()
        if os.geteuid() == 0:
            return Path("/var/lib/vel")
        return (Path(base) if base else Path.home() / ".local" / "share") / "vel"
    except RuntimeError as error:
        raise ImproperlyConfigured(
            "This account has no home directory: set VEL_DATA_DIR to an absolute path."
        ) from error


def secret_key(directory: Path) -> str:
    """Return `VEL_SECRET_KEY`, or else the key in the data directory.

    The key file is created once, with the mode 0600.
    """
    given = os.environ.get("VEL_SECRET_KEY", "").strip()
    if given:
        return given
    path = directory / "secret_key"
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        pass
    make_private_directory(directory)
    # Create the file once: of two processes that start together, one writes the key and the other
    # reads it.
    fresh = path.with_name(f"secret_key.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(50))
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(fresh)
    return path.read_text().strip()


def make_private_directory(directory: Path) -> None:
    """Create the data directory as `make_data_directory`. Raises `ImproperlyConfigured`."""
    try:
        make_data_directory(directory)
    except OSError as error:
        raise ImproperlyConfigured(
            f"The data directory {directory} cannot be made ({error.strerror}): "
            "set VEL_DATA_DIR to a directory that this account may write."
        ) from error
