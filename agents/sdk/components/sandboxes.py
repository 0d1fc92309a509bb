"""Sandboxes and their files, as a program makes them over a directory."""

from __future__ import annotations

import platform
from pathlib import Path

from sandbox.base import BaseSandbox
from sandbox.create import create_sandbox as create_any
from sandbox.create import directory_policy
from sandbox.linux import bubblewrap
from sandbox.macos import seatbelt

__all__ = ["BaseSandbox", "BubblewrapSandbox", "SeatbeltSandbox", "create_sandbox"]

Paths = list[str] | None


class BubblewrapSandbox(bubblewrap.BubblewrapSandbox):
    """Linux: commands start in `working_dir`, which they can write. See `create_sandbox`."""

    def __init__(
        self,
        working_dir: str | Path,
        allowed_paths: Paths = None,
        network: bool = False,
        timeout: float = 30,
    ) -> None:
        super().__init__(directory_policy(str(working_dir), allowed_paths, network, timeout))


class SeatbeltSandbox(seatbelt.SeatbeltSandbox):
    """macOS: commands start in `working_dir`, which they can write. See `create_sandbox`."""

    def __init__(
        self,
        working_dir: str | Path,
        allowed_paths: Paths = None,
        network: bool = False,
        timeout: float = 30,
    ) -> None:
        super().__init__(directory_policy(str(working_dir), allowed_paths, network, timeout))


def create_sandbox(
    working_dir: str | Path,
    allowed_paths: Paths = None,
    network: bool = False,
    timeout: float = 30,
) -> BaseSandbox:
    """The sandbox of this system; `sandbox.create.create_sandbox` says what it does and raises."""
    if platform.system() == "Linux":
        return BubblewrapSandbox(working_dir, allowed_paths, network, timeout)
    if platform.system() == "Darwin":
        return SeatbeltSandbox(working_dir, allowed_paths, network, timeout)
    return create_any(str(working_dir), allowed_paths, network, timeout)
