"""What MCP programs keep: for each of a thread a directory of its own, which outlives it.

It lies in the root of the thread's workspace beside the areas, so that no command, no file tool
and no other program sees it, and goes where that root goes. A subagent has a thread of its own;
one that only reads its parent's files keeps nothing. All functions block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agents.events.append import dump
from agents.mcp.limits import STATE_BYTES, STATE_FILES
from agents.models import McpServer
from agents.services.mcp_servers import IDENTITY
from agents.settings import DataSettings, DiskSettings
from sandbox.errors import SandboxSetupError
from sandbox.file_lock import FileLock, LockTimeout
from sandbox.namespace import HOME
from sandbox.owned_directories import make_private
from sandbox.policy import Limits, Mount
from sandbox.workspace import Workspace

AREA = "mcp"
TARGET = "/state"
"""Where a program finds its directory."""
VARIABLE = "VEL_STATE_DIR"
PLACEHOLDER = f"${{{VARIABLE}}}"
PATIENCE = 10.0
"""Seconds that a program waits for the last one, which is being ended, to be gone."""


@dataclass(frozen=True, slots=True)
class ProgramState:
    """`mount` is None where nothing is kept: the program then has its home, which is in memory."""

    mount: Mount | None = None

    @property
    def place(self) -> str:
        return HOME if self.mount is None else self.mount.target

    def filled_in(self, text: str) -> str:
        """`text` of a server's definition with the place for `PLACEHOLDER`."""
        return text.replace(PLACEHOLDER, self.place)

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        return {VARIABLE: self.place} | {
            key: self.filled_in(text) for key, text in variables.items()
        }

    def limits(self, output: int) -> Limits:
        return Limits(
            output=output,
            disk=STATE_BYTES,
            files=STATE_FILES,
            reserve=DiskSettings.now().sandbox_reserve,
        )


def program_key(server: McpServer) -> str:
    """The name of a program's directory. Another program, network or toolbox, or a server that was
    deleted and made anew, has another one: what was kept goes to whom it was meant for."""
    identity = [server.pk, *(getattr(server, name) for name in IDENTITY)]
    return f"{server.slug}-{hashlib.sha256(dump(identity).encode()).hexdigest()[:32]}"


@contextmanager
def held_state(workspace: Workspace | None, server: McpServer) -> Iterator[ProgramState]:
    """The directory of a program, made if it is missing, for one program at a time.

    Enter and leave it on one thread. Raises `SandboxSetupError`.
    """
    if workspace is None or workspace.read_only:
        yield ProgramState()
        return
    key = program_key(server)
    lock = state_lock(workspace.root.name, key)
    try:
        lock.__enter__()
    except LockTimeout:
        raise SandboxSetupError(
            f"The program of {server.slug} that ran before is not gone yet. Try again in a moment."
        ) from None
    try:
        directory = make_private(workspace.root, workspace.uid, AREA, key)
        yield ProgramState(Mount(directory, TARGET, writable=True))
    finally:
        lock.__exit__(None, None, None)


def state_lock(thread_id: str, key: str) -> FileLock:
    """Held while the program of this name runs, in any process of this host."""
    return FileLock(DataSettings.now().snapshots / thread_id / f"{AREA}-{key}.lock", PATIENCE)


def state_area(root: Path) -> Path:
    """Below the root of a workspace, what all its programs keep."""
    return root / AREA
