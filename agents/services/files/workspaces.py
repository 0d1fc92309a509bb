"""The place of a thread's files: directories, host account and limits."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from django.db import IntegrityError, transaction
from django.db.models import Max

from agents.models import Run, Thread
from agents.services.runs.session_files import file_rules
from agents.settings import DataSettings, DiskSettings
from sandbox.backends import ReadOnly, WorkspaceBackend
from sandbox.backends.protocol import FileBackend
from sandbox.own_directory.guard import DirectoryGuard
from sandbox.own_directory.rules import FileRules
from sandbox.policy import Limits
from sandbox.workspace import Workspace, prepare, uid_for

READ_ONLY_ADVICE = "read-only for this agent. Put what you found into your answer."


@dataclass(frozen=True, slots=True)
class WorkspaceLocation:
    """The data to open a thread's workspace without the database."""

    thread_id: str
    uid: int | None
    own_directory: Path | None
    """The caller's directory that is /sandbox/workspace; None: Vel's own."""
    rules: FileRules = field(default_factory=FileRules)
    """The rules for changes in that directory."""
    family: str = ""
    """The thread whose uploads, shared files and outputs it uses; empty: its own."""
    read_only: bool = False


def assign_sandbox_uid(thread: Thread) -> None:
    """Give a thread's commands their own host account, if this process can do that.

    All threads of a family use the account of the first. Call this in a transaction. The unique
    constraint resolves races: one of the processes always succeeds.
    """
    thread = thread.root or thread
    if os.geteuid() != 0 or thread.sandbox_uid is not None or thread.workspace_path:
        return
    first = uid_for(0)
    assigned = False
    while not assigned:
        last = Thread.every.aggregate(last=Max("sandbox_uid"))["last"]
        thread.sandbox_uid = uid_for(0 if last is None else last - first + 1)
        try:
            with transaction.atomic():
                thread.save(update_fields=["sandbox_uid"])
            assigned = True
        except IntegrityError:
            continue


def workspace_location(thread: Thread) -> WorkspaceLocation:
    own = Path(thread.workspace_path) if thread.workspace_path else None
    first = thread.root or thread
    return WorkspaceLocation(
        thread.id, first.sandbox_uid, own, file_rules(thread), thread.root_id or ""
    )


def run_location(run: Run) -> WorkspaceLocation:
    """Return the place of a run's files. A read-only subagent uses those of its parent."""
    if not run.spec.get("read_only"):
        return workspace_location(run.thread)
    location = workspace_location(run.thread) if run.parent is None else run_location(run.parent)
    return replace(location, read_only=True)


def open_workspace(location: WorkspaceLocation) -> Workspace:
    """Return the thread's directories, created if missing. Raises `SandboxSetupError`."""
    workspace = prepare(
        DataSettings.now().workspaces,
        location.thread_id,
        location.uid,
        own_directory=location.own_directory,
        family=location.family,
    )
    return replace(workspace, read_only=location.read_only, rules=location.rules)


def sandbox_limits() -> Limits:
    """Return the limits of file tools and commands, which keep space free for Vel's own files."""
    return Limits(reserve=DiskSettings.now().sandbox_reserve)


def workspace_backend(workspace: Workspace, guard: DirectoryGuard | None = None) -> FileBackend:
    """Return the workspace for the file tools, with the same paths as in commands.

    `guard` is that of the own directory; None: a new one.
    """
    elsewhere = {"skills": workspace.skills, "workspace": workspace.own_directory}
    backend = WorkspaceBackend(
        workspace.root,
        workspace.uid,
        workspace.gid,
        directories={
            area: location for area, location in elsewhere.items() if location is not None
        },
        family=workspace.family,
        guard=guard or workspace.guard(),
        limits=sandbox_limits(),
    )
    return ReadOnly(backend, READ_ONLY_ADVICE) if workspace.read_only else backend
