"""Disk maintenance: list workspaces, archive them and remove old ones."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from agents.kernel.thread_state import thread_states
from agents.models import Run, SeenFile, Thread, Upload, WorkspaceSnapshot
from agents.services.errors import Conflict
from agents.services.files.stored_snapshots import StorageFailed, erase_stored
from agents.services.files.thread_files import has_workspace, lie_here
from agents.services.placement import is_elsewhere
from agents.settings import DataSettings, MachineSettings
from agents.states import ENDED_RUNS
from sandbox.directories.archive import Archived, write_archive
from sandbox.directories.removal import remove_tree
from sandbox.paths import AREAS

REMOVED = ".removed-"
"""The prefix of directories that are being removed; no thread's directory starts with a dot."""
ORPHAN_SECONDS = 86_400.0
"""A newer directory without a thread may belong to a transaction that is not committed."""


@dataclass(frozen=True, slots=True)
class KeptWorkspace:
    """One workspace directory. `thread` is None for an orphan: its row is deleted."""

    key: str
    directory: Path
    thread: Thread | None


def kept_workspaces() -> Iterator[KeptWorkspace]:
    """Yield all workspaces of this machine, sorted by id."""
    base = DataSettings.now().workspaces
    names = sorted(entry.name for entry in os.scandir(base)) if base.is_dir() else []
    for start in range(0, len(names), 500):
        part = [name for name in names[start : start + 500] if not name.startswith(".")]
        threads = Thread.objects.select_related("owner").annotate(last_run=Max("runs__ended_at"))
        found = threads.in_bulk(part)
        for name in part:
            yield KeptWorkspace(name, base / name, found.get(name))


def is_busy(thread: Thread) -> bool:
    """Return whether a run of the thread has not ended: it may still use its files."""
    return Run.objects.filter(thread=thread).exclude(status__in=ENDED_RUNS).exists()


def is_old(kept: KeptWorkspace, days: int) -> bool:
    """Return whether the workspace was unused for this number of days and has no open run.

    A workspace without a thread is old after a day.
    """
    if kept.thread is None:
        return kept.directory.lstat().st_ctime < time.time() - ORPHAN_SECONDS
    thread = kept.thread
    last = Run.objects.filter(thread=thread).aggregate(last=Max("ended_at"))["last"]
    return (last or thread.created_at) < timezone.now() - timedelta(days=days) and not is_busy(
        thread
    )


def archive_workspace(kept: KeptWorkspace, directory: Path) -> tuple[Path, Archived]:
    """Write a workspace as `ID-TIME-RANDOM.tar.gz` into `directory`, and return the path.

    Raises OSError, and `Conflict` for a busy thread or one whose files are on another host.
    """
    if kept.thread is not None and is_busy(kept.thread):
        raise Conflict(f"A run of thread {kept.key} has not ended: archive it afterwards.")
    if kept.thread is not None and not lie_here(kept.thread):
        raise Conflict(f"The files of thread {kept.key} moved to another host. Archive it there.")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp = timezone.now().strftime("%Y%m%dT%H%M%SZ")
    target = directory / f"{kept.key}-{stamp}-{secrets.token_hex(2)}.tar.gz"
    areas = {area: kept.directory / area for area in AREAS if (kept.directory / area).exists()}
    return target, write_archive(areas, target)


def remove_workspace(kept: KeptWorkspace) -> None:
    """Delete a workspace with its snapshots and uploads. A user's own directory is kept.

    Raises `Conflict` for a busy thread, and OSError. After an OSError, `remove_leftovers` removes
    the rest.
    """
    if kept.thread is not None and not lie_here(kept.thread):
        kept = replace(kept, thread=None)  # another host has it; these are its old files here
    base = kept.directory.parent
    gone = base / f"{REMOVED}{kept.key}-{secrets.token_hex(4)}"
    with transaction.atomic():
        if kept.thread is not None:
            # A new message waits for this lock and starts with new directories.
            Thread.objects.select_for_update().get(pk=kept.thread.pk)
            if is_busy(kept.thread):
                raise Conflict(f"A run of thread {kept.key} has not ended.")
            WorkspaceSnapshot.objects.filter(thread=kept.thread).delete()
            SeenFile.objects.filter(thread=kept.thread).delete()
            for state in thread_states():
                state.forget(kept.key)
            if has_workspace(kept.thread):  # else uploads are rows, and stay
                Upload.objects.filter(thread=kept.thread).delete()
            Thread.objects.filter(pk=kept.thread.pk).update(
                workspace_generation=F("workspace_generation") + 1, copied_bytes=0
            )
        os.rename(kept.directory, gone)
    if kept.thread is not None:
        _erase_stored(kept.key)
    remove_tree(gone)
    remove_tree(DataSettings.now().snapshots / kept.key)


def _erase_stored(thread_id: str) -> None:
    """Remove the snapshots of a removed workspace from the common storage. Raises OSError.

    They stay if the thread has continued: its next snapshots remove those that it does not need.
    """
    if not MachineSettings.now().pins_threads:
        return
    with transaction.atomic():
        # A new message waits for this lock, so its snapshots are not removed.
        thread = Thread.every.select_for_update().filter(pk=thread_id).first()
        if thread is not None and _has_continued(thread):
            return
        try:
            erase_stored(thread_id)
        except StorageFailed as error:
            raise OSError(str(error)) from error


def _has_continued(thread: Thread) -> bool:
    """Return whether a thread has files again after its workspace was removed."""
    return (
        is_elsewhere(thread)
        or is_busy(thread)
        or (DataSettings.now().workspaces / thread.pk).exists()
        or WorkspaceSnapshot.objects.filter(thread=thread).exists()
    )


def remove_leftovers() -> Iterator[str]:
    """Finish interrupted removals, and delete snapshots and copies whose thread is gone.

    Yields the names of what was deleted. Raises OSError in the end if the common storage failed:
    then call it again later.
    """
    settings = DataSettings.now()
    failure: OSError | None = None
    if settings.workspaces.is_dir():
        for entry in list(os.scandir(settings.workspaces)):
            if not entry.name.startswith(REMOVED):
                continue
            try:
                _erase_stored(entry.name.removeprefix(REMOVED).rpartition("-")[0])
            except OSError as error:
                failure = error
                continue
            remove_tree(Path(entry.path))
            yield entry.name
    if settings.snapshots.is_dir():
        for entry in list(os.scandir(settings.snapshots)):
            old = entry.stat(follow_symlinks=False).st_ctime < time.time() - ORPHAN_SECONDS
            if old and not Thread.objects.filter(pk=entry.name).exists():
                remove_tree(Path(entry.path))
                yield f"snapshots of {entry.name}"
    for copies in (settings.synced_copies, settings.set_aside):
        for location in list(copies.iterdir()) if copies.is_dir() else []:
            if not Thread.objects.filter(pk=location.name.partition("-")[0]).exists():
                remove_tree(location)
                yield f"{copies.name}/{location.name}"
    if failure is not None:
        raise failure
