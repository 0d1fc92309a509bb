"""A thread's files for people: to look at, without making or changing anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from django.db import transaction

from agents.conf import vel_settings
from agents.models import Run, Thread
from agents.services.state_files import DatabaseFileStore
from sandbox.backends import FileBackend, StateFilesystemBackend, WorkspaceBackend
from sandbox.errors import ReadOnlyPath

T = TypeVar("T")


def has_workspace(thread: Thread) -> bool:
    """Whether its files lie in directories: its last run has a sandbox. Else they are rows."""
    run = Run.objects.filter(thread=thread).select_related("agent_version").order_by("number")
    last = run.last()
    return last is None or bool(last.spec["sandbox"])


def readable_files(thread: Thread, *, in_workspace: bool) -> FileBackend:
    """All files of the thread, whatever may be missing of its directories."""
    if in_workspace:
        # Not `open_workspace`, which makes what is missing: looking makes nothing.
        own = thread.workspace_path
        directories = MappingProxyType({"workspace": Path(own)} if own else {})
        base = vel_settings().workspaces
        family = base / thread.root_id if thread.root_id else None
        return WorkspaceBackend(base / thread.pk, directories=directories, family=family)
    owner = thread.root_id or thread.pk  # rows are the whole family's
    return StateFilesystemBackend(DatabaseFileStore(owner, in_transaction, _refuse_writing))


def in_transaction(function: Callable[..., T], *arguments: object) -> T:
    with transaction.atomic():
        return function(*arguments)


def _refuse_writing() -> None:
    raise ReadOnlyPath("only the run's own tools write here.")
