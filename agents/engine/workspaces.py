"""The files of one thread for the driver's tools."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from agents.engine.database import Database
from agents.engine.journal import Writer, check_fence
from agents.services.state_files import DatabaseFileStore
from agents.services.workspaces import WorkspaceLocation, open_workspace, workspace_backend
from agents.spec import AgentSpec
from sandbox.backends import StateFilesystemBackend
from sandbox.backends.protocol import FileBackend
from sandbox.base import BaseSandbox
from sandbox.bubblewrap import BubblewrapSandbox
from sandbox.errors import SandboxUnavailable
from sandbox.policy import Network
from sandbox.workspace import Workspace


class ThreadFiles:
    """Opened when the first tool asks for it. All methods are for tool threads: they block."""

    def __init__(
        self,
        location: WorkspaceLocation,
        spec: AgentSpec,
        writer: Writer,
        database: Database,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._location = location
        self._spec = spec
        self._writer = writer
        self._database = database
        self._loop = loop
        self._lock = threading.Lock()
        self._backend: FileBackend | None = None
        self._workspace: Workspace | None = None

    def backend(self) -> FileBackend:
        """The file tools' backend: rows without a sandbox, else the workspace's directories."""
        with self._lock:
            if self._backend is None:
                if self._spec.sandbox:
                    self._backend = workspace_backend(self._open())
                else:
                    check = partial(check_fence, self._writer)
                    self._backend = StateFilesystemBackend(
                        DatabaseFileStore(self._location.thread_id, self._call, check)
                    )
            return self._backend

    def sandbox(self, timeout: float) -> BaseSandbox:
        """A sandbox over the workspace. Raises `SandboxUnavailable` and `SandboxSetupError`."""
        if not self._spec.sandbox:
            raise SandboxUnavailable("This agent has no sandbox: nothing can be executed.")
        with self._lock:
            workspace = self._open()
        network = Network(self._spec.network)
        return BubblewrapSandbox(workspace.policy(timeout=timeout, network=network))

    def _open(self) -> Workspace:
        if self._workspace is None:
            self._workspace = open_workspace(self._location)
        return self._workspace

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """From a tool thread through the loop's one door to the database."""
        job = self._database.run(function, *arguments)
        return asyncio.run_coroutine_threadsafe(job, self._loop).result()
