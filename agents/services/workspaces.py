"""Where a thread's files are: which directories, which host account, which limits."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from django.db import IntegrityError, transaction
from django.db.models import Max

from agents.conf import vel_settings
from agents.models import Thread
from sandbox.backends import WorkspaceBackend
from sandbox.workspace import Workspace, prepare, uid_for


@dataclass(frozen=True, slots=True)
class WorkspaceLocation:
    """What it takes to open a thread's workspace, without the database."""

    thread_id: str
    uid: int | None
    own_directory: Path | None
    """A directory of the caller's that is /sandbox/workspace; None: Vel keeps one."""


def assign_sandbox_uid(thread: Thread) -> None:
    """Give a thread's commands a host account of their own, where this process can do that.

    Runs in a transaction; the unique constraint settles races, each of which somebody wins.
    """
    if os.geteuid() != 0 or thread.sandbox_uid is not None or thread.workspace_path:
        return
    first = uid_for(0)
    assigned = False
    while not assigned:
        last = Thread.objects.aggregate(last=Max("sandbox_uid"))["last"]
        thread.sandbox_uid = uid_for(0 if last is None else last - first + 1)
        try:
            with transaction.atomic():
                thread.save(update_fields=["sandbox_uid"])
            assigned = True
        except IntegrityError:
            continue


def workspace_location(thread: Thread) -> WorkspaceLocation:
    own = Path(thread.workspace_path) if thread.workspace_path else None
    return WorkspaceLocation(thread.id, thread.sandbox_uid, own)


def open_workspace(location: WorkspaceLocation) -> Workspace:
    """The thread's directories, made where they are missing. Raises `SandboxSetupError`."""
    return prepare(
        vel_settings().workspaces,
        location.thread_id,
        location.uid,
        own_directory=location.own_directory,
    )


def workspace_backend(workspace: Workspace) -> WorkspaceBackend:
    """The file tools' view of it: the same paths as in commands."""
    return WorkspaceBackend(
        workspace.root, workspace.uid, workspace.gid, directories=workspace.directories
    )
