"""Access to the files of one thread, for the tools of a run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agents.disk_space import is_short, shortage
from agents.engine.files.snapshots import CallSnapshots
from agents.engine.storage.database import Database
from agents.engine.storage.journal import Writer, check_fence
from agents.kernel.mounts import mount_at, mounts
from agents.middleware.program_files import OWN_ROWS, ProgramFiles
from agents.middleware.run_parts import RunParts
from agents.services.files.outside_changes import keep_state_before
from agents.services.files.seen_files import DatabaseSeenFiles, used_by_other_subagents
from agents.services.files.snapshots import write_lock
from agents.services.files.state_files import DatabaseFileStore
from agents.services.files.workspaces import (
    READ_ONLY_ADVICE,
    WorkspaceLocation,
    open_workspace,
    sandbox_limits,
    workspace_backend,
)
from agents.services.placement import toolbox_here
from agents.spec import AgentSpec
from sandbox.backends import (
    AdaptedBackend,
    CompositeBackend,
    ReadOnly,
    RememberingBackend,
    SeenFiles,
    StateFilesystemBackend,
    TreeBackend,
)
from sandbox.backends.protocol import FileBackend
from sandbox.backends.state import StoreBelow
from sandbox.base import BaseSandbox
from sandbox.errors import SandboxSetupError, SandboxUnavailable
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.own_directory.guard import DirectoryGuard
from sandbox.own_directory.inventory import Inventory
from sandbox.paths import FAMILY_AREAS, SANDBOX_ROOT, is_within
from sandbox.policy import Network
from sandbox.toolboxes.find import HeldToolbox
from sandbox.toolboxes.toolbox import Toolbox
from sandbox.workspace import Workspace


class ThreadFiles:
    """The files of a thread, opened by the first tool that needs them.

    All methods block: use them in tool threads.
    """

    def __init__(
        self,
        location: WorkspaceLocation,
        agent_id: str,
        spec: AgentSpec,
        parts: RunParts,
        writer: Writer,
        database: Database,
        loop: asyncio.AbstractEventLoop,
        program: ProgramFiles | None = None,
    ) -> None:
        self.of_program = program
        self.location = location
        self._agent_id = agent_id
        self._spec = spec
        self._parts = parts
        self._writer = writer
        self._database = database
        self._loop = loop
        self._lock = threading.Lock()
        self._backend: FileBackend | None = None
        self._workspace: Workspace | None = None
        self._guard: DirectoryGuard | None = None
        self.snapshots = CallSnapshots(
            writer,
            self.workspace,
            self._call,
            is_on=spec.sandbox and not spec.read_only and not _is_parents(location),
        )
        self._toolbox: HeldToolbox | None = None

    def backend(self) -> FileBackend:
        """Return the backend for the file tools.

        Its files are in the workspace's directories, in database rows (without a sandbox), or in a
        backend of the program. The mounts of features are always included. Raises `SandboxError`.
        """
        with self._lock:
            if self._backend is None:
                self._backend = self._opened()
            return self._backend

    def _opened(self) -> FileBackend:
        own: FileBackend | None = None
        routes: dict[str, FileBackend] = {}
        if self.of_program is not None:
            own, routes = self.of_program.opened(read_only=self.location.read_only)
        if self._spec.sandbox:
            return self._with_routes(workspace_backend(self._open(), self._guard), routes)
        check = partial(check_fence, self._writer)
        rows = DatabaseFileStore(self._family, self._call, check)
        areas = _mounted(self._areas())
        if own is None:
            files: FileBackend = StateFilesystemBackend(rows)
            if areas:
                files = CompositeBackend(files, areas, aside=areas)
            if self.location.read_only:
                files = ReadOnly(files, READ_ONLY_ADVICE)
            return self._with_routes(files, routes)
        for top in OWN_ROWS:
            kept = StateFilesystemBackend(StoreBelow(rows, top))
            areas[top] = ReadOnly(kept, READ_ONLY_ADVICE) if self.location.read_only else kept
        if isinstance(own, AdaptedBackend):
            mounted = {**routes, **areas, **_mounts(self._agent_id, self._call)}
            return CompositeBackend(own, mounted, aside=areas)
        return self._with_routes(CompositeBackend(own, areas, aside=areas), routes)

    def _with_routes(self, files: FileBackend, routes: Mapping[str, FileBackend]) -> FileBackend:
        """Return `files` with mounts and other backends at their paths.

        A program's backend uses its own tools. All other files are protected: agents cannot
        overwrite changes that they have not read.
        """
        adapted = {path: one for path, one in routes.items() if isinstance(one, AdaptedBackend)}
        others = {path: one for path, one in routes.items() if path not in adapted}
        check = partial(check_fence, self._writer)
        thread_id = self._writer.thread_id
        seen = DatabaseSeenFiles(thread_id, self._writer.run_id, self._call, check)
        remembering = RememberingBackend(
            with_mounts(files, self._agent_id, self._call, others),
            SeenOutsideMounts(seen),
            write_lock(self._family),
            self._used_by_others if self.location.family else None,
        )
        return CompositeBackend(remembering, adapted) if adapted else remembering

    @property
    def _family(self) -> str:
        return self.location.family or self.location.thread_id

    def _used_by_others(self, path: str) -> bool:
        """Return whether another subagent uses this shared file at the same time."""
        has_own_workspace = self._spec.sandbox and self.location.own_directory is None
        shared = [f"{SANDBOX_ROOT}/{area}" for area in FAMILY_AREAS]
        if has_own_workspace and not any(is_within(path, area) for area in shared):
            return False
        family, run_id = self.location.family, self._writer.run_id
        return bool(self._call(used_by_other_subagents, family, run_id, path))

    def sandbox(self, timeout: float) -> BaseSandbox:
        """Return a sandbox over the workspace.

        `timeout` is in seconds. Raises `SandboxError`, for example for a missing toolbox.
        """
        if not self._spec.sandbox:
            raise SandboxUnavailable("This agent has no sandbox: nothing can be executed.")
        if is_short():
            # A command can still write for a moment before it is killed, and so use the reserve.
            raise SandboxSetupError(
                f"The command did not start: {shortage()}. Commands run again when a person has "
                "made room."
            )
        with self._lock:
            workspace = self._open()
            guard = self._guard
            toolbox = self._hold_toolbox()
        network = Network(self._spec.network)
        limits = sandbox_limits()
        policy = workspace.policy(timeout=timeout, network=network, toolbox=toolbox, limits=limits)
        policy = replace(policy, allowed_hosts=self._spec.allowed_hosts)
        return BubblewrapSandbox(policy, guard=guard)

    def _hold_toolbox(self) -> Toolbox | None:
        """Return the toolbox: until this object is deleted, always the same generation."""
        if not self._spec.toolbox:
            return None
        if self._toolbox is None:
            self._toolbox = toolbox_here(self._spec.toolbox)
        return self._toolbox.toolbox

    def workspace(self) -> Workspace:
        """Return the thread's directories, created if necessary. Raises `SandboxError`.

        The first call for a user's own directory stores its state. The report at the end of the run
        compares with it, and lists the changed files that programs outside the sandbox run.
        """
        with self._lock:
            workspace = self._open()
            guard = self._guard
        if guard is not None:
            guard.found()
        return workspace

    def _open(self) -> Workspace:
        if self._workspace is None:
            workspace = open_workspace(self.location)
            areas: dict[str, Any] = self._areas()
            self._workspace = replace(workspace, **areas)
            self._guard = self._workspace.guard(self._keep_state_before)
        return self._workspace

    def _keep_state_before(self, found: Inventory) -> None:
        try:
            keep_state_before(self.location, found)
        except OSError as error:
            raise SandboxSetupError(
                f"The state of {self.location.own_directory} before the run cannot be stored: "
                f"{error.strerror}. Nothing was changed."
            ) from error

    def _areas(self) -> dict[str, Path]:
        """Return the directories of the host that features provide as areas of the sandbox."""
        found = {part.area: part.directory(self._call) for part in self._parts if part.area}
        return {area: directory for area, directory in found.items() if directory is not None}

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a transaction from a tool thread, on the event loop's only database connection."""
        job = self._database.run(function, *arguments)
        return asyncio.run_coroutine_threadsafe(job, self._loop).result()


def _is_parents(location: WorkspaceLocation) -> bool:
    """Return whether a subagent works in its parent's directory, which then has the changes."""
    return bool(location.family) and location.own_directory is not None


def _mounted(areas: Mapping[str, Path]) -> dict[str, FileBackend]:
    """Return areas as backends by path, each also at its short path."""
    return {
        f"{root}/{area}": ReadOnly(TreeBackend(directory))
        for area, directory in areas.items()
        for root in (SANDBOX_ROOT, "")
    }


def with_mounts(
    files: FileBackend,
    agent_id: str,
    call: Callable[..., Any],
    more: Mapping[str, FileBackend] = MappingProxyType({}),
) -> FileBackend:
    """Return `files` with the backends `more` and the mounts of features at their paths.

    `call` runs a function in a transaction.
    """
    found = {**more, **_mounts(agent_id, call)}
    return CompositeBackend(files, found) if found else files


def _mounts(agent_id: str, call: Callable[..., Any]) -> dict[str, FileBackend]:
    return {mount.root: mount.files(agent_id, call) for mount in mounts()}


class SeenOutsideMounts:
    """`seen` without the paths of mounts.

    A write to a mount is a proposal, which is based on a revision and not on read content.
    """

    def __init__(self, seen: SeenFiles) -> None:
        self._seen = seen

    def get(self, path: str) -> str | None:
        return self._seen.get(path) if mount_at(path) is None else None

    def put(self, path: str, content_hash: str | None) -> None:
        if mount_at(path) is None:
            self._seen.put(path, content_hash)
