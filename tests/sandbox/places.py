"""Directories and sandboxes for the tests, the same for root and for an ordinary user."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sandbox.directories.removal import remove_tree
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.policy import Limits
from sandbox.workspace import Workspace, prepare, uid_for
from tests.support.hang import HANG

AS_ROOT = os.geteuid() == 0


def account(number: int = 0) -> int | None:
    """Return a sandbox account for root; an ordinary user has only its own account."""
    return uid_for(1000 + number) if AS_ROOT else None


@contextmanager
def reachable_directory() -> Iterator[Path]:
    """Yield a temporary directory that every account can enter; pytest's own have mode 0700."""
    path = Path(tempfile.mkdtemp(prefix="vel-sandbox-test-", dir="/var/tmp"))
    path.chmod(0o711)
    try:
        yield path
    finally:
        remove_tree(path)


def workspace_in(place: Path, key: str = "thread") -> Workspace:
    return prepare(place / "threads", key, account())


def sandbox_in(place: Path, *, timeout: float = 60.0, **limits: int | None) -> BubblewrapSandbox:
    policy = workspace_in(place).policy(timeout=timeout)
    return BubblewrapSandbox(replace(policy, limits=replace(Limits(), **limits)))


def processes_with(text: str) -> list[int]:
    """Return the host's processes that have `text` in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            line = (entry / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if text.encode() in line:
            found.append(int(entry.name))
    return found


def until(condition: Callable[[], bool]) -> None:
    """Return when `condition` is true; fail after `HANG` seconds."""
    deadline = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < deadline, "the condition was not reached"
        time.sleep(0.01)


def is_dead(pid: int) -> bool:
    """Return whether the process has ended, even if its entry has not been reaped yet."""
    return _state(pid) in ("Z", "")


def is_asleep(pid: int) -> bool:
    """Return whether the process waits for something."""
    return _state(pid) == "S"


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except (FileNotFoundError, ProcessLookupError):
        return ""
