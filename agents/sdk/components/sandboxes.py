"""Sandboxes over a directory, and their files, for a program."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

from sandbox.base import BaseSandbox
from sandbox.create import create_sandbox as create_any
from sandbox.create import directory_policy
from sandbox.linux import bubblewrap
from sandbox.macos import seatbelt

__all__ = ["BaseSandbox", "BubblewrapSandbox", "SeatbeltSandbox", "create_sandbox"]

Paths = Sequence[str | Path] | None


class BubblewrapSandbox(bubblewrap.BubblewrapSandbox):
    """A sandbox for Linux: commands start in `working_dir`, which is writable.

    See `create_sandbox`.

    >>> BubblewrapSandbox("./work").execute_python("print(2 ** 10)").stdout
    '1024\\n'
    """

    def __init__(
        self,
        working_dir: str | Path,
        allowed_paths: Paths = None,
        network: bool = False,
        timeout: float = 30,
    ) -> None:
        super().__init__(directory_policy(working_dir, allowed_paths, network, timeout))


class SeatbeltSandbox(seatbelt.SeatbeltSandbox):
    """A sandbox for macOS: commands start in `working_dir`, which is writable.

    See `create_sandbox`.

    >>> try:
    ...     SeatbeltSandbox("./work")
    ... except SandboxNotAvailableError as error:
    ...     print(error)
    Seatbelt is not available (Linux): ...
    """

    def __init__(
        self,
        working_dir: str | Path,
        allowed_paths: Paths = None,
        network: bool = False,
        timeout: float = 30,
    ) -> None:
        super().__init__(directory_policy(working_dir, allowed_paths, network, timeout))


def create_sandbox(
    working_dir: str | Path,
    allowed_paths: Paths = None,
    network: bool = False,
    timeout: float = 30,
) -> BaseSandbox:
    """Return the sandbox of this operating system.

    Commands start in `working_dir` and can write there. They can also read `allowed_paths`, and
    reach the internet with `network`. `timeout` is the limit of a command in seconds. See
    `sandbox.create.create_sandbox`, also for the errors.

    >>> create_sandbox("./work", timeout=10).execute("echo hello").stdout
    'hello\\n'
    """
    if platform.system() == "Linux":
        return BubblewrapSandbox(working_dir, allowed_paths, network, timeout)
    if platform.system() == "Darwin":
        return SeatbeltSandbox(working_dir, allowed_paths, network, timeout)
    return create_any(working_dir, allowed_paths, network, timeout)
