"""A thread's files for display. Reading them does not change them."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from django.db import transaction

from agents.models import Run, Thread, Upload, UploadContent, WorkspaceSnapshot
from agents.selectors.artifacts import MAX_FILES, steps_of, written_paths
from agents.services.errors import Conflict, NotFound
from agents.services.files.changes import load_state, shown_path
from agents.services.files.snapshots import last_stored, latest_manifest, snapshot_store
from agents.services.files.state_files import DatabaseFileStore
from agents.services.placement import holder_of, is_current, is_elsewhere
from agents.settings import DataSettings, MachineSettings
from sandbox.backends import FileBackend, StateFilesystemBackend, WorkspaceBackend
from sandbox.directories.file_lock import FileLock, LockTimeout
from sandbox.directories.removal import remove_tree
from sandbox.errors import FileError, ReadOnlyPath, SandboxError
from sandbox.paths import AREAS, READ_ONLY_AREAS
from sandbox.snapshots import Manifest, compare, restore

T = TypeVar("T")


def has_workspace(thread: Thread) -> bool:
    """Return whether the files are in directories, because the last run has a sandbox.

    Otherwise they are rows. A thread without runs has directories.
    """
    run = Run.objects.filter(thread=thread).select_related("agent_version").order_by("number")
    last = run.last()
    return last is None or bool(last.spec["sandbox"])


def readable_files(thread: Thread, *, in_workspace: bool) -> FileBackend:
    """Return all files of the thread, even if some of its directories are missing.

    `in_workspace` is the result of `has_workspace`. For a thread on another host these are the
    files of its last stored snapshot. Raises `Conflict` if they are unavailable here.
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


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file of a run. `what` is added or changed.

    `size` is its present size in bytes, or None if the file no longer exists.
    """

    path: str
    what: str
    size: int | None


@dataclass(frozen=True, slots=True)
class Artifacts:
    """`is_cut`: some files are not listed, or some steps of the run are no longer kept."""

    files: list[Artifact]
    is_cut: bool


def artifacts_of(run: Run) -> Artifacts:
    """Return the files that the run created or changed, sorted by path, at most `MAX_FILES`.

    With a workspace, files that the run itself has deleted again are omitted.
    """
    in_workspace = has_workspace(run.thread)
    changed, is_cut = _in_snapshots(run) if in_workspace else ({}, False)
    if not in_workspace:
        changed = dict.fromkeys(written_paths(run), "changed")
    backend = readable_files(run.thread, in_workspace=in_workspace)
    files = []
    for path, what in sorted(changed.items())[:MAX_FILES]:
        try:
            resolved = backend.resolve(path)
            stat = backend.stat(resolved)
        except FileError:
            resolved, stat = path, None
        files.append(Artifact(resolved, what, stat.size if stat else None))
    return Artifacts(files, is_cut or len(changed) > MAX_FILES)


def _in_snapshots(run: Run) -> tuple[dict[str, str], bool]:
    store = snapshot_store(run.thread_id)
    found: dict[str, str] = {}
    is_cut = False
    for step in steps_of(run):
        try:
            changes = compare(load_state(store, step.base), load_state(store, step.manifest))
        except NotFound:
            is_cut = True
            continue
        for change in changes:
            path = shown_path(change.path)
            if change.after is None:
                found.pop(path, None)
            elif change.after.kind == "file":
                found[path] = "added" if found.get(path) == "added" else change.what
    return found, is_cut


_UPLOADS = "user_uploads"


def synced_copy(thread: Thread) -> Path:
    """Return a directory with the thread's areas in their last stored state.

    Raises `Conflict` if this is not the present state, or cannot be read.
    """
    holder = holder_of(thread)
    state = last_stored(thread.pk)
    last = latest_manifest(thread.pk)
    if thread.workspace_path or (holder and last and (state is None or state.manifest != last)):
        raise Conflict(
            f"The files of this thread are on the host {holder or thread.host}, and only there.",
            code="files_elsewhere",
        )
    uploads = list(Upload.objects.filter(thread=thread).order_by("pk"))
    top = DataSettings.now().synced_copies / thread.pk
    location = top / _version(state, uploads)
    try:
        if not location.exists():
            with FileLock(top / "lock"):
                if not location.exists():
                    _make(thread.pk, location, state, uploads)
    except (SandboxError, LockTimeout, OSError) as error:
        raise Conflict(
            f"The files of this thread are on {f'the host {holder}' if holder else 'no host'}, and "
            f"their copy in the storage cannot be read: {error}",
            code="files_elsewhere",
        ) from error
    return location


def _version(state: WorkspaceSnapshot | None, uploads: list[Upload]) -> str:
    parts = [state.manifest if state else ""]
    parts += [f"{upload.pk}{upload.has_rendition}" for upload in uploads]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _make(
    thread_id: str, location: Path, state: WorkspaceSnapshot | None, uploads: list[Upload]
) -> None:
    for old in list(location.parent.iterdir()):
        if old.is_dir():
            remove_tree(old)
    new = location.with_name(f"new-{secrets.token_hex(8)}")
    for area in AREAS:
        (new / area).mkdir(mode=0o700, parents=True)
    if state is not None:
        store = snapshot_store(thread_id)
        areas = {area: new / area for area in AREAS if area not in READ_ONLY_AREAS}
        restore(store, areas, Manifest({}), store.load(state.manifest), None)
    contents = {row.pk: row for row in UploadContent.objects.filter(pk__in=uploads).iterator()}
    for upload in uploads:
        if (content := contents.get(upload.pk)) is None:
            continue
        (new / _UPLOADS / upload.name).write_bytes(content.data)
        if upload.has_rendition and content.rendition is not None:
            (new / _UPLOADS / upload.rendition).write_bytes(content.rendition)
    os.rename(new, location)
