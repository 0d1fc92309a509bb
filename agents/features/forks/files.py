"""The files of a forked thread: those of a step of another thread."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from django.db import transaction
from django.db.models import Q

from agents.models import (
    Effect,
    Run,
    SnapshotCause,
    StateFile,
    Thread,
    ToolCall,
    WorkspaceSnapshot,
)
from agents.services.errors import Conflict
from agents.services.files.changes import load_state, shown_path
from agents.services.files.snapshots import record_snapshot, snapshot_store, watched_areas
from agents.services.files.stored_snapshots import StoredSnapshots
from agents.services.files.thread_files import has_workspace, lie_here, synced_copy
from agents.services.files.workspaces import open_workspace, workspace_location
from agents.services.thread_transfer.receiving import discard
from agents.settings import DataSettings, MachineSettings, SnapshotSettings
from sandbox.directories.removal import remove_tree
from sandbox.paths import AREAS
from sandbox.snapshots import Manifest, SnapshotLimits, SnapshotStore, restore
from sandbox.workspace import Workspace

NOW = "now"
THEN = "then"
NONE = "none"
CHOICES = (THEN, NOW, NONE)

LIMITS = SnapshotLimits(file_bytes=256 * 1024**2, read_bytes=1024**3, seconds=30.0)
"""Limits of the current files that are copied; the answer names the files above them."""

_COPIED = tuple(area for area in AREAS if area != "skills")
"""Each run mounts its skills again."""


@dataclass(slots=True)
class CopiedFiles:
    """The number and bytes of written paths, and (path, reason) of paths that were not written."""

    written: int = 0
    size: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)


def state_after(run: Run, turn: int) -> str | None:
    """Return the snapshot after a turn, or None if the files have not changed since.

    Raises `Conflict` if that state was not kept.
    """
    later = Q(run__number__gt=run.number) | Q(run=run.pk, turn__gt=turn)
    calls = ToolCall.objects.filter(later, run__thread=run.thread_id, started_at__isnull=False)
    # A subagent can write into directories that it shares with the thread.
    writes = calls.filter(~Q(effect=Effect.READ) | Q(children__isnull=False))
    rows = WorkspaceSnapshot.objects.filter(thread=run.thread_id).order_by("pk")
    changes = rows.filter(cause=SnapshotCause.CALL)
    before = changes.exclude(later).last()
    restores = rows.filter(cause=SnapshotCause.RESTORE)
    if before is not None:
        restores = restores.filter(pk__gt=before.pk)
    if not writes.exists() and not restores.exists():
        return None
    if before is not None:
        return before.manifest
    if not has_workspace(run.thread) or SnapshotSettings.now().SNAPSHOT_TURNS == 0:
        raise _not_kept()
    first = changes.filter(later).select_related("run").first()
    if first is None:
        if rows.exists():
            raise _not_kept()
        return None  # later calls have changed no files
    assert first.run is not None
    # A call before the oldest row that is kept can have changed files too.
    earlier = Q(run__number__lt=first.run.number) | Q(run=first.run, turn__lt=first.turn)
    if writes.filter(earlier).exists():
        raise _not_kept()
    return first.base


def _not_kept() -> Conflict:
    return Conflict(
        "The files of this step are not stored. Set `files` to `now` for the current files of the "
        "thread, or to `none` for no files.",
        code="files_not_kept",
    )


def copy_directories(source: Thread, target: Thread, state: str | None) -> CopiedFiles:
    """Give the new thread `target` its directories with the files of `source`.

    `state` None means the current files. Uploads never change, so they are always the current ones.
    The source and its snapshots do not change. Raises OSError, `SandboxError`, and `NotFound` for a
    state that has been removed.
    """
    workspace = open_workspace(workspace_location(target))
    owner = (workspace.uid, workspace.gid) if os.geteuid() == 0 else None
    areas = {area: workspace.directories[area] for area in _COPIED}
    there = _directories(source)
    copied = CopiedFiles()
    if state is not None:
        store = snapshot_store(source.pk)
        _put(store, areas, load_state(store, state), owner, copied)
        there = {area: location for area, location in there.items() if area == "user_uploads"}
    aside = SnapshotStore(DataSettings.now().snapshots / target.pk / "fork", LIMITS)
    try:
        _put(aside, areas, aside.load(aside.take(there).manifest), owner, copied)
    finally:
        remove_tree(aside.directory)
    if MachineSettings.now().pins_threads:
        _let_any_host_have(target, workspace)
    return copied


def _let_any_host_have(target: Thread, workspace: Workspace) -> None:
    """Store the new thread's files, so that any machine can fetch them for the first run."""
    store = StoredSnapshots(DataSettings.now().snapshots / target.pk, target.pk, LIMITS)
    taken = store.take(watched_areas(workspace))
    store.publish(taken.manifest)
    with transaction.atomic():
        record_snapshot(target.pk, taken, SnapshotCause.OUTSIDE, is_stored=True)
        Thread.every.filter(pk=target.pk).update(placement=1)
    discard(target.pk)


def _put(
    store: SnapshotStore,
    areas: Mapping[str, Path],
    target: Manifest,
    owner: tuple[int, int] | None,
    copied: CopiedFiles,
) -> None:
    done = restore(store, areas, Manifest({}), target, owner)
    copied.written += done.written
    copied.size += sum(node.size for node in target.nodes.values())
    copied.left_out += [(shown_path(path), reason) for path, reason in done.failed]


def _directories(thread: Thread) -> dict[str, Path]:
    """Return the existing directories and create none. Copy another machine's files here first."""
    base = DataSettings.now().workspaces / thread.pk if lie_here(thread) else synced_copy(thread)
    found = {area: base / area for area in _COPIED}
    if thread.workspace_path:
        found["workspace"] = Path(thread.workspace_path)
    return {area: location for area, location in found.items() if location.is_dir()}


def copy_rows(source: Thread, target: Thread) -> CopiedFiles:
    """Copy the files of a thread without directories, in the transaction of the fork."""
    rows = StateFile.objects.filter(thread=source).order_by("pk")
    copies = [
        StateFile(thread=target, path=row.path, content=row.content)
        for row in rows.iterator(chunk_size=50)
    ]
    StateFile.objects.bulk_create(copies, batch_size=50)
    return CopiedFiles(len(copies), sum(len(row.content) for row in copies))


def remove_directories(thread_id: str) -> None:
    """Remove the directories of a fork that failed."""
    settings = DataSettings.now()
    remove_tree(settings.workspaces / thread_id)
    remove_tree(settings.snapshots / thread_id)
