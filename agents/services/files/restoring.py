"""Restoring a thread's files to an earlier state."""

from __future__ import annotations

import os
from dataclasses import replace

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import F, Q

from agents.models import Run, SnapshotCause, Thread
from agents.services.audit import Change, record
from agents.services.errors import Conflict
from agents.services.files.changes import load_state
from agents.services.files.snapshots import (
    latest_manifest,
    publish,
    record_snapshot,
    snapshot_store,
    watched_areas,
)
from agents.services.files.workspaces import open_workspace, workspace_location
from agents.services.placement import must_be_here
from agents.states import RunStatus
from sandbox.directories.file_lock import LockTimeout
from sandbox.errors import SandboxError
from sandbox.snapshots import Restored, Taken, count_changes, restore

DRIVEN = (RunStatus.QUEUED, RunStatus.RUNNING)


def restore_workspace(thread: Thread, state: str, *, by: AbstractBaseUser) -> Restored:
    """Restore the files that the agent can change to `state` (a manifest's digest).

    The present state is recorded first, so you can undo the restore, also if it fails half-way.
    Pending approvals become stale and are requested again.

    Raises:
        Conflict: The files are on another host or in use, a run of the thread is driven or queued,
            or (code `restore_failed`) storing or writing files failed. Only in the last case some
            files may have changed.
        NotFound: The state is no longer kept.
    """
    must_be_here(
        thread,
        "restore them by its pages or its `vel`.",
        "send a message, and restore them on the host that takes it.",
    )
    store = snapshot_store(thread.pk)
    target = load_state(store, state)
    try:
        # A driver's first call that can write waits for this lock (`CallSnapshots.begin`).
        # `_claim_files` sees the run of a driver that already has it.
        with store.lock:
            _claim_files(thread)
            workspace = open_workspace(workspace_location(thread))
            areas = watched_areas(workspace)
            before = store.take(areas)
            _record_present(thread, before, is_stored=publish(store, before.manifest))
            owner = (workspace.uid, workspace.gid) if os.geteuid() == 0 else None
            done = restore(store, areas, store.load(before.manifest), target, owner)
            after = store.take(areas)
            _record(thread, before, after, by, is_stored=publish(store, after.manifest))
    except LockTimeout:
        raise Conflict(
            "The files of this thread are in use: try again in a moment.", code="thread_busy"
        ) from None
    except (OSError, SandboxError) as error:
        raise Conflict(
            f"The files could not be restored: {error}", code="restore_failed"
        ) from error
    return done


@transaction.atomic
def _claim_files(thread: Thread) -> None:
    """Raise `Conflict` if a run may write, and invalidate earlier approvals."""
    Thread.objects.select_for_update(no_key=True).get(pk=thread.pk)
    # Subagents write into directories that they share with the thread.
    family = Q(thread=thread) | Q(thread__root=thread)
    if Run.objects.filter(family, status__in=DRIVEN).exists():
        raise Conflict(
            "A run of this thread is at work: wait for its end, or cancel it.", code="thread_busy"
        )
    _bump_generation(thread)


def _bump_generation(thread: Thread) -> None:
    Thread.objects.filter(pk=thread.pk).update(workspace_generation=F("workspace_generation") + 1)


@transaction.atomic
def _record_present(thread: Thread, before: Taken, *, is_stored: bool) -> None:
    """Add a row for changes of others since the last row. Without one, nobody could undo them."""
    last = latest_manifest(thread.pk)
    if last is not None and last != before.manifest:
        store = snapshot_store(thread.pk)
        changes = count_changes(store.load(last), store.load(before.manifest))
        outside = replace(before, base=last, changes=changes)
        record_snapshot(thread.pk, outside, SnapshotCause.OUTSIDE, is_stored=is_stored)


@transaction.atomic
def _record(
    thread: Thread, before: Taken, after: Taken, by: AbstractBaseUser, *, is_stored: bool
) -> None:
    # Again: approvals requested during the restore showed files in the middle of it.
    _bump_generation(thread)
    if after.has_changed:
        record_snapshot(thread.pk, after, SnapshotCause.RESTORE, by_id=by.pk, is_stored=is_stored)
        audited: dict[str, Change] = {"state": (before.manifest, after.manifest)}
        record("workspace.restored", thread, name=thread.pk, by=by, changes=audited)
