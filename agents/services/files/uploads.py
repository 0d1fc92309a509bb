"""Files from people for an agent: in /sandbox/user_uploads, read-only for its commands."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.core.files import File
from django.db import transaction
from django.db.models import F

from agents.documents.kinds import (
    RENDITION,
    Kind,
    NotTaken,
    free_name,
    kind_of,
    original_name,
    safe_name,
    same_name,
)
from agents.ids import new_id
from agents.models import Run, Thread, Upload
from agents.services.disk_reserve import disk_full_refused, require_room
from agents.services.errors import Conflict, InvalidRequest, NotFound, ServiceError
from agents.services.files.thread_files import has_workspace, in_transaction
from agents.services.files.upload_contents import (
    UPLOADS,
    UploadContents,
    UploadFiles,
    directory_uploads,
    row_uploads,
)
from agents.services.files.workspaces import assign_sandbox_uid, workspace_location
from agents.services.runs.start import CreatedRun, RunRequest, create_run
from agents.settings import MachineSettings, UploadSettings
from agents.states import ACTIVE_RUNS, RunStatus
from sandbox.errors import FileChanged, FileError

__all__ = [
    "UPLOADS",
    "check_uploads",
    "create_run_with",
    "delete_upload",
    "file_problems",
    "safe_name",
    "store_uploads",
]

RACES = 5
"""The number of other names that are tried if other requests take the free ones."""

Files = Sequence["File[Any]"]


def check_uploads(files: Files) -> list[Kind]:
    """Check the number, size and kind of the files before anything is stored.

    Returns their kinds. Raises `InvalidRequest` (upload_too_large, upload_type), and `NoSpace` if
    the files would use the space that is reserved for runs.
    """
    settings = UploadSettings.now()
    total = sum(file.size or 0 for file in files)
    if len(files) > settings.UPLOAD_FILES or total > settings.UPLOAD_BYTES:
        raise InvalidRequest(
            f"{len(files)} files with {total:,} bytes were sent; a thread takes "
            f"{settings.UPLOAD_FILES} files with {settings.UPLOAD_BYTES:,} bytes in all.",
            code="upload_too_large",
        )
    require_room(total)
    return [_kind(file) for file in files]


def file_problems(files: Files) -> list[str]:
    """Return for each file why it is refused for itself, or an empty text."""
    problems = []
    for file in files:
        try:
            check_uploads([file])
        except ServiceError as error:
            problems.append(error.message)
        else:
            problems.append("")
    return problems


def _kind(file: File[Any]) -> Kind:
    name = safe_name(file.name or "")
    try:
        return kind_of(name, file, UploadSettings.now().UPLOAD_TYPES)
    except NotTaken as refusal:
        raise InvalidRequest(
            f"{name!r} {refusal}. Taken are {', '.join(UploadSettings.now().UPLOAD_TYPES)}; "
            "name the file as what it is, or ask the operator.",
            code="upload_type",
        ) from None


def create_run_with(
    request: RunRequest,
    files: Files,
    *,
    owner: AbstractBaseUser,
    idempotency_key: str | None = None,
) -> CreatedRun:
    """Create a run for a message with files: both are stored, or neither.

    Raises the errors of `create_run` and `store_uploads`, and `NoSpace` if a write fails because
    the disk is full.
    """
    if not files:
        with disk_full_refused():
            return create_run(request, owner=owner, idempotency_key=idempotency_key)
    check_uploads(files)
    if idempotency_key is not None:
        request = replace(request, attached=tuple(_fingerprint(file) for file in files))
    with disk_full_refused(), transaction.atomic():
        result = create_run(request, owner=owner, idempotency_key=idempotency_key)
        if result.created:
            store_uploads(result.run.thread, files, run=result.run)
    return result


@transaction.atomic
def store_uploads(thread: Thread, files: Files, *, run: Run | None = None) -> list[Upload]:
    """Store files in the thread's user_uploads, each under a new name.

    Existing files are never replaced. The message of `run`, or the next one, mentions them to the
    model. All of them are stored or none. Raises `InvalidRequest` (too many, too large, an
    unsupported kind), `Conflict` (the workspace refuses them), `SandboxError` if the workspace
    cannot be created, and `NoSpace` if the disk is full.
    """
    kinds = check_uploads(files)
    # One upload at a time for each thread, to enforce the limits.
    thread = Thread.objects.select_for_update(no_key=True).get(pk=thread.pk)
    there = _uploads_of(thread)
    rows = [_row(thread, run, file, kind) for file, kind in zip(files, kinds, strict=True)]
    for row, new in zip(rows, sorted(new_id() for _ in rows), strict=True):
        row.id = new  # in the order of the request
    try:
        taken = _check_room(there, thread, files)
        with disk_full_refused(), _undone(there) as stored:
            for row, file in zip(rows, files, strict=True):
                _put(there, row, file, taken)
                stored.append(row.name)
            Upload.objects.bulk_create(rows)
            there.settle(rows)
    except FileError as error:
        raise Conflict(f"The upload could not be stored: {error}", code="upload_failed") from error
    if run is not None:
        Run.objects.filter(pk=run.pk).update(has_uploads=True)
    _count_change(thread)
    return rows


@transaction.atomic
def delete_upload(thread: Thread, upload_id: str) -> None:
    """Delete a file of the thread, and its Markdown.

    Messages about it stay in the conversation. Raises `NotFound`, and `Conflict` if a run of the
    thread has not ended.
    """
    thread = Thread.objects.select_for_update(no_key=True).get(pk=thread.pk)
    upload = Upload.objects.filter(thread=thread, pk=upload_id).first()
    if upload is None:
        raise NotFound("This thread has no such upload.", code="unknown_upload")
    open_runs = Run.objects.filter(thread=thread, status__in=[*ACTIVE_RUNS, RunStatus.PENDING])
    if open_runs.exists():
        raise Conflict(
            "A run of this thread is at work or waits: cancel it, or wait for its end.",
            code="thread_busy",
        )
    there = _uploads_of(thread)
    upload.delete()
    _count_change(thread)
    try:
        for name in filter(None, (upload.rendition, upload.name)):
            there.remove(name)
    except FileError as error:
        raise Conflict(f"The file could not be deleted: {error}", code="upload_failed") from error


class _undone:
    """Removes the stored files if a later step fails."""

    def __init__(self, there: UploadFiles) -> None:
        self._there = there
        self._names: list[str] = []

    def __enter__(self) -> list[str]:
        return self._names

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            for name in self._names:
                self._there.remove(name)


def _uploads_of(thread: Thread) -> UploadFiles:
    if has_workspace(thread):
        assign_sandbox_uid(thread)
        if MachineSettings.now().pins_threads and not thread.workspace_path:
            return UploadContents(thread)
        return directory_uploads(workspace_location(thread))
    return row_uploads(thread.pk, in_transaction, lambda: None)


def _check_room(there: UploadFiles, thread: Thread, files: Files) -> set[str]:
    """Return the names in use, in the form of `same_name`. Raises `InvalidRequest` over a limit."""
    settings = UploadSettings.now()
    renditions = set(Upload.objects.filter(thread=thread).values_list("rendition", flat=True)) - {
        ""
    }
    found = [entry for entry in there.entries() if entry.name not in renditions]
    count = len(files) + len(found)
    size = sum(file.size or 0 for file in files) + sum(entry.size or 0 for entry in found)
    if count > settings.UPLOAD_FILES or size > settings.UPLOAD_BYTES:
        raise InvalidRequest(
            f"With these the thread would have {count} uploads with {size:,} bytes; it takes "
            f"{settings.UPLOAD_FILES} with {settings.UPLOAD_BYTES:,}.",
            code="upload_too_large",
        )
    longest = max((file.size or 0 for file in files), default=0)
    if there.most_bytes is not None and longest > there.most_bytes:
        raise InvalidRequest(
            f"A file has {longest:,} bytes; an agent without a sandbox takes {there.most_bytes:,} "
            "a file: divide it, or use an agent with a sandbox.",
            code="upload_too_large",
        )
    return {same_name(name) for name in (*renditions, *(e.name for e in found if e.type != "link"))}


def _row(thread: Thread, run: Run | None, file: File[Any], kind: Kind) -> Upload:
    return Upload(
        thread=thread,
        run=run,
        original_name=original_name(file.name or ""),
        reader=kind.reader,
        media_type=kind.media_type,
        size=file.size or 0,
        rendition=RENDITION if kind.reader else "",
    )


def _put(there: UploadFiles, row: Upload, file: File[Any], taken: set[str]) -> None:
    """Write the file under a free name, and reserve the name of its Markdown."""
    ending = row.rendition
    for _ in range(RACES):
        try:
            row.name = free_name(safe_name(file.name or ""), taken, ending)
        except LookupError as error:
            raise Conflict(f"{error}: use another.", code="upload_failed") from None
        row.path = there.shown(row.name)
        row.rendition = row.name + ending if ending else ""
        taken |= {same_name(name) for name in (row.name, row.rendition) if name}
        file.seek(0)
        try:
            there.put(row.name, _chunks(file))
        except FileChanged:
            continue
        return
    raise Conflict("The names of these files are being taken: try again.", code="upload_failed")


def _chunks(file: File[Any]) -> Iterator[bytes]:
    yield from file.chunks()


def _fingerprint(file: File[Any]) -> str:
    file.seek(0)
    digest = hashlib.sha256(safe_name(file.name or "").encode())
    for chunk in _chunks(file):
        digest.update(chunk)
    return digest.hexdigest()


def _count_change(thread: Thread) -> None:
    """Invalidate earlier approvals: they showed other files."""
    Thread.objects.filter(pk=thread.pk).update(workspace_generation=F("workspace_generation") + 1)
