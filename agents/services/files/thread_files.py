"""A thread's files for display: reading creates and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from django.db import transaction

from agents.models import Run, Thread
from agents.services.files.state_files import DatabaseFileStore
from agents.services.files.storage_sync import synced_copy
from agents.services.placement import is_current, is_elsewhere
from agents.settings import DataSettings, MachineSettings
from sandbox.backends import FileBackend, StateFilesystemBackend, WorkspaceBackend
from sandbox.errors import ReadOnlyPath

T = TypeVar("T")


def has_workspace(thread: Thread) -> bool:
    """Return whether the files are in directories (its last run has a sandbox) or rows."""
    run = Run.objects.filter(thread=thread).select_related("agent_version").order_by("number")
    last = run.last()
    return last is None or bool(last.spec["sandbox"])


def readable_files(thread: Thread, *, in_workspace: bool) -> FileBackend:
    """Return all files of the thread, even if some of its directories are missing.

    For a thread on another host these are the files of its last stored snapshot. Raises `Conflict`
    if they are unavailable here.
    """
    if in_workspace and not lie_here(thread):
        above = synced_copy(thread.root) if thread.root is not None else None
        return WorkspaceBackend(synced_copy(thread), family=above)
    if in_workspace:
        # Not `open_workspace`, which creates missing directories.
        own = thread.workspace_path
        directories = MappingProxyType({"workspace": Path(own)} if own else {})
        base = DataSettings.now().workspaces
        family = base / thread.root_id if thread.root_id else None
        return WorkspaceBackend(base / thread.pk, directories=directories, family=family)
    owner = thread.root_id or thread.pk  # rows belong to the whole family
    return StateFilesystemBackend(DatabaseFileStore(owner, in_transaction, _refuse_writing))


def lie_here(thread: Thread) -> bool:
    """Return whether this machine's directories are the thread's present ones."""
    if not MachineSettings.now().pins_threads:
        return True
    first = thread.root or thread
    return not is_elsewhere(thread) and is_current(thread.pk, first.placement)


def in_transaction(function: Callable[..., T], *arguments: object) -> T:
    with transaction.atomic():
        return function(*arguments)


def _refuse_writing() -> None:
    raise ReadOnlyPath("only the run's own tools write here.")
