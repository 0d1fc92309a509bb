"""The first step of a run on one of several machines: fetch the thread's files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from agents.engine.process.heartbeat import RunHandle
from agents.engine.process.resources import Resources
from agents.engine.storage.journal import Writer, check_fence
from agents.engine.storage.notes import add_note
from agents.events.append import append_events, dump
from agents.events.catalogue.files import WorkspaceMoved
from agents.kernel.thread_state import ThreadState, thread_states
from agents.models import Run, Thread, Upload, UploadContent, WorkspaceSnapshot
from agents.services.files.changes import shown_path
from agents.services.files.snapshots import last_stored, latest_manifest
from agents.services.files.stored_snapshots import StorageFailed
from agents.services.files.upload_contents import add_contents, without_contents
from agents.services.files.workspaces import (
    WorkspaceLocation,
    assign_sandbox_uid,
    workspace_location,
)
from agents.services.placement import is_current, machine_name
from agents.services.thread_transfer.receiving import (
    ReceivedFiles,
    bring_uploads,
    receive_thread,
)
from agents.settings import MachineSettings
from sandbox.directories.file_lock import LockTimeout
from sandbox.errors import SandboxError

MAX_TOLD = 20
"""The number of paths in the note for the model and in the event; both contain the total."""


class FilesNotRestored(Exception):
    """Raised if the files of a moved thread are unavailable. The message is for people."""


@dataclass(slots=True)
class _Move:
    """The directories of one thread to fetch: where they are, and the row with their state."""

    location: WorkspaceLocation
    placement: int
    state: WorkspaceSnapshot | None
    is_last: bool
    """Whether the stored state is the last state of the thread."""
    lost_host: str
    states: list[tuple[ThreadState, str]]
    """The stored states of features' files."""


@dataclass(slots=True)
class _Plan:
    moves: list[_Move]
    uploads_at: WorkspaceLocation
    uploads: dict[str, tuple[str, bool]]
    lacking: dict[str, str]


async def settle_files(worker: Resources, handle: RunHandle, writer: Writer, run: Run) -> None:
    """Bring the thread's files to this machine, from the common storage and the database.

    Does nothing on a single machine, and for an agent without a sandbox. Raises `StorageFailed`
    (worth another try), `FilesNotRestored`, `Stopped` and `FenceLost`.
    """
    if not MachineSettings.now().pins_threads or not run.spec["sandbox"]:
        return
    plan: _Plan = await worker.database.run(_plan, writer, run)
    try:
        for move in plan.moves:
            if await _in_thread(worker, handle, partial(_is_here, move)):
                continue
            state = move.state.manifest if move.state is not None else None
            receiving = partial(receive_thread, move.location, move.placement, state, move.states)
            received = await _in_thread(worker, handle, receiving)
            await worker.database.run(_tell, writer, run, move, received)
        call = partial(_call, worker, asyncio.get_running_loop())
        if plan.lacking:
            adding = partial(add_contents, plan.uploads_at, plan.lacking, call)
            await _in_thread(worker, handle, adding)
        fetch = partial(_fetch, call, plan.uploads)
        bringing = partial(bring_uploads, plan.uploads_at, plan.uploads, fetch)
        await _in_thread(worker, handle, bringing)
    except StorageFailed:
        raise
    except (SandboxError, LockTimeout, OSError) as error:
        raise FilesNotRestored(f"The files of this thread cannot be restored: {error}") from error


def _is_here(move: _Move) -> bool:
    return is_current(move.location.thread_id, move.placement)


async def _in_thread(worker: Resources, handle: RunHandle, function: Callable[[], Any]) -> Any:
    """Run a function in a tool thread, and wait for its end even if the driver is stopped.

    Otherwise, nothing would mark an incomplete directory.
    """
    with handle.interruptible():
        future = asyncio.ensure_future(worker.in_thread(function))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait([future])
            raise


def _plan(writer: Writer, run: Run) -> _Plan:
    check_fence(writer)
    thread = _own_thread(run)
    first = thread.root or thread
    assign_sandbox_uid(first)
    moves = []
    for member in [first] if thread.pk == first.pk else [first, thread]:
        if member.workspace_path:
            continue
        state = last_stored(member.pk)
        last = latest_manifest(member.pk)
        is_last = last is None or (state is not None and state.manifest == last)
        where = workspace_location(member)
        last_states = [(kind, kind.last(member.pk)) for kind in thread_states()]
        states = [(kind, stored) for kind, stored in last_states if stored is not None]
        moves.append(_Move(where, first.placement, state, is_last, member.lost_host, states))
    names: dict[str, tuple[str, bool]] = {}
    for upload in Upload.objects.filter(thread=first):
        names[upload.name] = (upload.pk, False)
        if upload.has_rendition:
            names[upload.rendition] = (upload.pk, True)
    return _Plan(moves, workspace_location(first), names, without_contents(first.pk))


def _own_thread(run: Run) -> Thread:
    """Return the thread that owns the run's directories.

    A read-only subagent uses the directories of its parent run.
    """
    while run.parent is not None and run.spec.get("read_only"):
        run = run.parent
    return run.thread


def _call(
    worker: Resources,
    loop: asyncio.AbstractEventLoop,
    function: Callable[..., Any],
    *arguments: Any,
) -> Any:
    """Run a transaction from a tool thread, on the event loop's only database connection."""
    job = worker.database.run(function, *arguments)
    return asyncio.run_coroutine_threadsafe(job, loop).result()


def _fetch(call: Callable[..., Any], names: dict[str, tuple[str, bool]], name: str) -> bytes | None:
    found: bytes | None = call(_content, *names[name])
    return found


def _content(upload_id: str, is_rendition: bool) -> bytes | None:
    field = "rendition" if is_rendition else "data"
    rows = UploadContent.objects.filter(pk=upload_id)
    data = rows.values_list(field, flat=True).first()
    return bytes(data) if data is not None else None


def _tell(writer: Writer, run: Run, move: _Move, received: ReceivedFiles) -> None:
    """Store the event about the files' new machine, and a note for the model about lost files."""
    check_fence(writer)
    thread_id = move.location.thread_id
    Thread.objects.filter(pk=thread_id).update(lost_host="")
    for kind in received.lost:
        kind.forget(thread_id)
    if move.state is None and not move.lost_host and not move.states:
        return  # the thread had no files
    state = move.state
    missing = _shown(received.missing)
    states: dict[str, Any] = {
        kind.field: "lost" if kind in received.lost else "kept" for kind, _ in move.states
    }
    event = WorkspaceMoved(
        host=machine_name(),
        lost_host=move.lost_host,
        run=state.run_id if state else None,
        turn=state.turn if state else None,
        snapshot=state.pk if state else None,
        is_last_kept=move.is_last,
        missing=missing[:MAX_TOLD],
        missing_count=len(missing),
        **states,
    )
    append_events(run.pk, [event])
    if text := _note(move, missing, received):
        add_note(run, writer, text, "files")


def _shown(paths: list[str]) -> list[str]:
    """Return paths as JSON, so that no name can break out of its sentence."""
    return [dump(shown_path(path)) for path in paths]


def _note(move: _Move, missing: list[str], received: ReceivedFiles) -> str:
    left_out, parts = _shown(received.left_out), []
    if move.lost_host:
        kept = (
            "restored as they were after the last change that was saved"
            if move.state is not None
            else "lost: none had been saved, and the workspace is empty except user_uploads"
        )
        parts.append(
            f"The machine that held the workspace failed. Its files are {kept}. Later changes are "
            "lost: check that a file is as you expect before you rely on it."
        )
    if missing:
        names = ", ".join(missing[:MAX_TOLD])
        more = f" and {len(missing) - MAX_TOLD} more" if len(missing) > MAX_TOLD else ""
        parts.append(f"The workspace was moved to another machine without {names}{more}.")
    if left_out:
        names = ", ".join(left_out[:MAX_TOLD])
        parts.append(f"Directories that only hold what can be installed again are empty: {names}.")
    for kind, _ in move.states:
        if kind in received.lost:
            parts.append(kind.lost)
        elif move.lost_host:
            parts.append(kind.restored)
    return " ".join(parts)
