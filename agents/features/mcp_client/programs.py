"""The state of MCP programs: a directory for each program of a thread, which stays when it ends.

It is in the root of the thread's workspace, outside the areas, so that commands, file tools and
other programs cannot see it, and it moves with that root. The programs of a subagent have their
state in its own thread; those of a subagent that only reads files have no state. All functions
block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agents.events.append import dump
from agents.features.mcp_client.models import McpServer
from agents.features.mcp_client.protocol.limits import STATE_BYTES, STATE_FILES
from agents.settings import DataSettings, DiskSettings
from sandbox.directories.file_lock import FileLock, LockTimeout
from sandbox.directories.owned import make_private
from sandbox.errors import SandboxSetupError
from sandbox.linux.namespace import HOME
from sandbox.policy import Limits, Mount
from sandbox.workspace import Workspace

IDENTITY = ("transport", "url", "command", "arguments", "toolbox", "network", "allowed_hosts")
"""The fields that identify who receives the secrets and the state of a program."""
AREA = "mcp"
TARGET = "/state"
"""The path of the directory for a program."""
VARIABLE = "VEL_STATE_DIR"
PLACEHOLDER = f"${{{VARIABLE}}}"
PATIENCE = 10.0
"""Seconds that a program waits until its predecessor has ended."""


@dataclass(frozen=True, slots=True)
class ProgramState:
    """A program's state. Without a directory, `mount` is None and its home is in memory."""

    mount: Mount | None = None

    @property
    def place(self) -> str:
        return HOME if self.mount is None else self.mount.target

    def filled_in(self, text: str) -> str:
        """Replace `PLACEHOLDER` in `text` of a server's definition by the path."""
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
    """Return the name of a program's directory.

    Another program, network or toolbox, or a server that was deleted and defined again, has
    another directory: state goes only to the program that wrote it.
    """
    identity = [server.pk, *(getattr(server, name) for name in IDENTITY)]
    return f"{server.slug}-{hashlib.sha256(dump(identity).encode()).hexdigest()[:32]}"


@contextmanager
def held_state(workspace: Workspace | None, server: McpServer) -> Iterator[ProgramState]:
    """Hold the directory of a program, for one program at a time. Make it if it is missing.

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
            f"The previous program of {server.slug} has not ended yet. Try again in a moment."
        ) from None
    try:
        directory = make_private(workspace.root, workspace.uid, AREA, key)
        yield ProgramState(Mount(directory, TARGET, writable=True))
    finally:
        lock.__exit__(None, None, None)


def state_lock(thread_id: str, key: str) -> FileLock:
    """Return the lock of a program, which any process of this host holds while it runs."""
    return FileLock(DataSettings.now().snapshots / thread_id / f"{AREA}-{key}.lock", PATIENCE)


def state_area(root: Path) -> Path:
    """Return the directory of the state of all programs in a workspace."""
    return root / AREA
