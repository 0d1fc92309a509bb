"""Which directories of the host may be shown to commands, and which never."""

from __future__ import annotations

import os
from pathlib import Path

from sandbox.errors import SandboxSetupError

_FORBIDDEN_TREES = ("/proc", "/sys", "/dev", "/run", "/boot")
"""The machine itself, and the sockets of its services."""

_SECRET_NAMES = frozenset({".ssh", ".gnupg", ".aws", ".kube", ".docker"})

_SHARED_DIRECTORIES = frozenset(
    [
        *("/bin", "/etc", "/home", "/lib", "/lib64", "/opt", "/root", "/sbin", "/srv", "/tmp"),  # noqa: S108
        *("/usr", "/usr/bin", "/usr/lib", "/usr/local", "/usr/share"),
        *("/var", "/var/lib", "/var/tmp"),  # noqa: S108
    ]
)
"""Nobody's own: not to be written by commands as a whole."""


def writable_directory(given: str | Path) -> Path:
    """The path without links, if commands may write all of it. It need not exist.

    Raises `SandboxSetupError` for /, system directories, homes and what lies in places for keys.
    """
    path = _showable(given)
    if str(path) in _SHARED_DIRECTORIES or path == _home() or path in _home().parents:
        raise SandboxSetupError(
            f"The working directory {path} was asked for, but commands could then rewrite what "
            "this machine or this account runs. Use a directory of its own below it."
        )
    return path


def readable_path(given: str | Path) -> Path:
    """The path without links, if commands may read all of it.

    Raises `SandboxSetupError` like `writable_directory`, and for sockets, pipes and devices.
    """
    path = _showable(given)
    if path == _home() or path in _home().parents:
        raise SandboxSetupError(
            f"Read access to {path} was asked for, which holds the keys and settings of this "
            "account. Allow the directories that are needed, one by one."
        )
    if not path.exists():
        raise SandboxSetupError(f"The allowed path {path} does not exist. Remove or make it.")
    if not (path.is_dir() or path.is_file()):
        raise SandboxSetupError(
            f"The allowed path {path} is a socket, a pipe or a device, through which commands "
            "would reach the host. Allow files and directories only."
        )
    return path


def _showable(given: str | Path) -> Path:
    path = Path(given).resolve()
    forbidden = path == Path("/") or any(path.is_relative_to(tree) for tree in _FORBIDDEN_TREES)
    if forbidden:
        raise SandboxSetupError(
            f"{given} (which is {path}) was asked for; a sandbox never shows /, "
            f"{', '.join(_FORBIDDEN_TREES)} or what lies in them. Use another path."
        )
    if not _SECRET_NAMES.isdisjoint(path.parts):
        raise SandboxSetupError(
            f"{given} (which is {path}) was asked for, but it is a place for keys. Use another."
        )
    return path


def _home() -> Path:
    # Without a passwd entry and HOME this stays "~", which is no directory of anybody.
    return Path(os.path.expanduser("~")).resolve()
