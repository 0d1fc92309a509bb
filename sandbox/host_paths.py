"""Rules for the host's directories: which ones commands may use, and which ones never."""

from __future__ import annotations

import os
from pathlib import Path

from sandbox.errors import SandboxSetupError

_FORBIDDEN_TREES = ("/proc", "/sys", "/dev", "/run", "/boot")
"""The machine itself, and the sockets of its services."""

_SYSTEM_TREES = (
    *("/etc", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/var/spool/cron", "/System", "/Library", "/private/etc"),
)
"""Programs and settings of the machine: commands must not write anywhere in them."""

_SECRET_NAMES = frozenset({".ssh", ".gnupg", ".aws", ".kube", ".docker"})

_SHARED_DIRECTORIES = frozenset(
    ("/home", "/opt", "/root", "/srv", "/tmp", "/var", "/var/lib", "/var/tmp")  # noqa: S108
)
"""Shared directories: commands must not be able to write all of one."""


def writable_directory(requested: str | Path) -> Path:
    """Return the resolved path if commands may write everything in it. It need not exist.

    Raises:
        SandboxSetupError: The path is /, a system directory, a shared directory such as /tmp, this
            account's home directory or a parent of it, or a path with keys.
    """
    path = _showable(requested)
    system = any(path.is_relative_to(tree) for tree in _SYSTEM_TREES)
    if system or str(path) in _SHARED_DIRECTORIES or path == _home() or path in _home().parents:
        advice = "a directory for your own files" if system else "a separate directory below it"
        raise SandboxSetupError(
            f"{path} cannot be the working directory: commands could then rewrite programs or "
            f"settings of this machine or this account. Use {advice}."
        )
    return path


def readable_path(requested: str | Path) -> Path:
    """Return the resolved path if commands may read everything in it.

    Raises:
        SandboxSetupError: The path is /, in /proc, /sys, /dev, /run or /boot, this account's home
            directory or a parent of it, a path with keys, missing, or a socket, a pipe or a device.
    """
    path = _showable(requested)
    if path == _home() or path in _home().parents:
        raise SandboxSetupError(
            f"Commands cannot get read access to {path}: it contains the keys and settings of this "
            "account. Allow only the directories that they need."
        )
    if not path.exists():
        raise SandboxSetupError(f"The allowed path {path} does not exist. Remove it or create it.")
    if not (path.is_dir() or path.is_file()):
        raise SandboxSetupError(
            f"The allowed path {path} is a socket, a pipe or a device, through which commands "
            "would reach the host. Allow files and directories only."
        )
    return path


def _showable(requested: str | Path) -> Path:
    path = Path(requested).resolve()
    forbidden = path == Path("/") or any(path.is_relative_to(tree) for tree in _FORBIDDEN_TREES)
    if forbidden:
        raise SandboxSetupError(
            f"{requested} (resolved: {path}) is not allowed: a sandbox never shows /, "
            f"{', '.join(_FORBIDDEN_TREES)} or their contents. Use another path."
        )
    if not _SECRET_NAMES.isdisjoint(path.parts):
        raise SandboxSetupError(
            f"{requested} (resolved: {path}) is not allowed: it is a directory for keys. "
            "Use another path."
        )
    return path


def _home() -> Path:
    # Without a passwd entry and HOME, the path stays "~", which is not a home directory.
    return Path(os.path.expanduser("~")).resolve()
