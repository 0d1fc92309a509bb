"""Read-only copies of workspaces of other hosts, for people."""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

from agents.models import Thread, Upload, UploadContent, WorkspaceSnapshot
from agents.services.errors import Conflict
from agents.services.files.snapshots import last_stored, latest_manifest, snapshot_store
from agents.services.placement import holder_of
from agents.settings import DataSettings
from sandbox.directories.file_lock import FileLock, LockTimeout
from sandbox.directories.removal import remove_tree
from sandbox.errors import SandboxError
from sandbox.paths import AREAS, READ_ONLY_AREAS
from sandbox.snapshots import Manifest, restore

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
            f"what the storage has of them cannot be read: {error}",
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
