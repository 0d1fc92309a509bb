"""Sending a thread from a living host: its files go to the storage, then others may continue it.

The functions of files block and need a thread; those of rows are separate transactions.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction

from agents.kernel.thread_state import ThreadState, thread_states
from agents.models import Run, RunClock, SnapshotCause, Thread
from agents.models.database_clock import DatabaseNow
from agents.services.files.snapshots import latest_manifest, record_snapshot, watched_areas
from agents.services.files.stored_snapshots import StoredSnapshots
from agents.services.files.upload_contents import add_contents, without_contents
from agents.services.files.workspaces import WorkspaceLocation, open_workspace, workspace_location
from agents.services.machines.actions import release
from agents.services.placement import Member, is_current, lock_membership
from agents.services.runs.wake import enqueue_run
from agents.settings import DataSettings
from agents.states import RunStatus
from sandbox.errors import SandboxError
from sandbox.snapshots import (
    ChangeCounts,
    Manifest,
    SnapshotLimits,
    SnapshotLost,
    Taken,
    count_changes,
)

Call = Callable[..., Any]
_Step = tuple[str, Taken, list[tuple[ThreadState, str]]]
"""A thread, its files, and the stored states of features."""

LIMITS = SnapshotLimits(
    entries=200_000, file_bytes=1024**3, read_bytes=8 * 1024**3, seconds=120.0, names=64 * 1024**2
)
"""The limits of the last snapshot on a host. A thread that exceeds them stays there."""


class CannotSendThread(SandboxError):
    """The thread stays: its files exceed a snapshot's limits."""


@dataclass(frozen=True, slots=True)
class ThreadToSend:
    """A family of threads that is about to leave: its directories and its first thread."""

    first: str
    places: tuple[WorkspaceLocation, ...]


@transaction.atomic
def next_thread_to_send(member: Member, after: str) -> ThreadToSend | None:
    """Return the host's next family of threads to send: the first without a driver.

    Families are sorted by the id of their first thread, and `after` is such an id. Returns None if
    there is none among the next 200.
    """
    threads = Thread.every.filter(
        host=member.name, root=None, workspace_path="", erased_at=None, pk__gt=after
    )
    for thread in threads.order_by("pk")[:200]:
        family = [thread, *Thread.every.filter(root=thread).order_by("pk")]
        if _driven(thread.pk):
            continue
        here = [one for one in family if is_current(one.pk, thread.placement)]
        return ThreadToSend(thread.pk, tuple(workspace_location(one) for one in here))
    return None


def _driven(first: str) -> bool:
    clocks = RunClock.objects.filter(run__status=RunStatus.RUNNING, lease_until__gt=DatabaseNow())
    return (
        clocks.filter(run__thread=first).exists() or clocks.filter(run__thread__root=first).exists()
    )


def send_thread(to_send: ThreadToSend, member: Member, call: Call) -> bool:
    """Store the files of a family and release it.

    Returns False if this host no longer has it, or drives it.

    `call` runs a function of rows in a transaction. Raises `CannotSendThread`, `StorageFailed` and
    other `SandboxError`, LockTimeout, OSError; then nothing has changed.
    """
    with ExitStack() as locks:
        steps: list[_Step] = []
        for location in to_send.places:
            store = StoredSnapshots(
                DataSettings.now().snapshots / location.thread_id, location.thread_id, LIMITS
            )
            locks.enter_context(store.lock)
            found = store.take(watched_areas(open_workspace(location)))
            now = store.load(found.manifest)
            if too_much := now.over_limits():
                raise CannotSendThread(
                    f"{len(too_much)} of its files are more than a snapshot holds."
                )
            states = []
            for state in thread_states():
                stored = state.store(open_workspace(location), LIMITS)
                if stored == "":
                    raise CannotSendThread(state.too_large)
                if stored is not None:
                    states.append((state, stored))
            store.publish(found.manifest)
            base = call(latest_manifest, location.thread_id) or ""
            changes = _changes(store, base, now)
            if lacking := call(without_contents, location.thread_id):
                add_contents(location, lacking, call)
            taken = replace(found, base=base, changes=changes)
            steps.append((location.thread_id, taken, states))
        return bool(call(_send_thread, to_send.first, member, steps))


def _changes(store: StoredSnapshots, base: str, now: Manifest) -> ChangeCounts:
    try:
        return count_changes(store.load(base), now)
    except SnapshotLost:
        return ChangeCounts()


@transaction.atomic
def _send_thread(first: str, member: Member, steps: list[_Step]) -> bool:
    # Waits for claims in progress; the host takes no others.
    if not lock_membership(member, exclusive=True):
        return False
    thread = Thread.every.select_for_update(no_key=True).filter(pk=first).first()
    if thread is None or thread.host != member.name or _driven(first):
        return False
    for thread_id, step, states in steps:
        record_snapshot(thread_id, step, SnapshotCause.OUTSIDE, is_stored=True)
        for state, stored in states:
            state.record(thread_id, stored)
    release([first])
    waiting = Run.objects.filter(status=RunStatus.QUEUED)
    for run in [*waiting.filter(thread=first), *waiting.filter(thread__root=first)]:
        enqueue_run(run)
    return True
