"""What people give an agent: files in /sandbox/user_uploads, read-only to its commands."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models import F

from agents.conf import vel_settings
from agents.models import Thread
from agents.services.errors import Conflict, InvalidRequest
from agents.services.state_files import DatabaseFileStore
from agents.services.thread_files import has_workspace, in_transaction
from agents.services.workspaces import assign_sandbox_uid, open_workspace, workspace_location
from sandbox.backends import FileBackend, StateFilesystemBackend, TreeBackend
from sandbox.backends.budget import Budget, FileLimits
from sandbox.backends.protocol import ABSENT
from sandbox.errors import FileChanged, FileError, FileMissing
from sandbox.paths import SANDBOX_ROOT

UPLOADS = f"{SANDBOX_ROOT}/user_uploads"
NAME_BYTES = 180
"""Room is left for a number: file systems end at 255."""
TRIES = 1_000


@dataclass(frozen=True, slots=True)
class Upload:
    """A stored file: its path as the agent sees it, and its size in bytes."""

    path: str
    size: int


def safe_name(given: str) -> str:
    """The last part of a name that somebody's computer gave, without what may hurt anybody.

    No slashes of either kind, no control, direction or zero-width characters, no leading dot or
    dash, at most 180 bytes with the suffix kept.
    """
    last = given.replace("\\", "/").rpartition("/")[2]
    clean = "".join(
        "_" if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") else char
        for char in unicodedata.normalize("NFC", last.encode("utf-8", "replace").decode())
    ).strip()
    clean = clean.lstrip(".- ") or "upload"
    stem, dot, suffix = clean.rpartition(".")
    if not dot or len(suffix.encode()) > 20:
        stem, suffix = clean, ""
    ending = f".{suffix}" if suffix else ""
    room = NAME_BYTES - len(ending.encode())
    return stem.encode()[:room].decode(errors="ignore") + ending


def check_uploads(files: Sequence[UploadedFile[Any]]) -> None:
    """What can be refused before anything is stored. Raises `InvalidRequest`."""
    settings = vel_settings()
    total = sum(file.size or 0 for file in files)
    if len(files) > settings.UPLOAD_FILES or total > settings.UPLOAD_BYTES:
        raise InvalidRequest(
            f"{len(files)} files with {total:,} bytes were sent; a thread takes "
            f"{settings.UPLOAD_FILES} files with {settings.UPLOAD_BYTES:,} bytes in all.",
            code="upload_too_large",
        )


@transaction.atomic
def store_uploads(thread: Thread, files: Sequence[UploadedFile[Any]]) -> list[Upload]:
    """Put files into the thread's user_uploads, each under a name of its own.

    Nothing that is there is replaced. Raises `InvalidRequest` (too many, too large) and
    `Conflict` (the workspace cannot take them); some may then be stored. Raises `SandboxError`
    where the workspace cannot be made.
    """
    check_uploads(files)
    # One at a time for the thread, so that the limits hold.
    thread = Thread.objects.select_for_update(no_key=True).get(pk=thread.pk)
    backend, top = _uploads_of(thread)
    _check_room(backend, top, files)
    try:
        stored = [_store(backend, top, file) for file in files]
    except FileError as error:
        raise Conflict(f"The upload could not be stored: {error}", code="upload_failed") from error
    # What was approved until now was approved over other files.
    Thread.objects.filter(pk=thread.pk).update(workspace_generation=F("workspace_generation") + 1)
    return stored


def message_with_uploads(message: str, names: Iterable[str]) -> str:
    """The message, with the uploads named as the agent finds them."""
    lines = "\n".join(f"- {UPLOADS}/{name}" for name in names)
    return f"{message.rstrip()}\n\nAttached files:\n{lines}" if lines else message


def distinct_names(files: Sequence[UploadedFile[Any]]) -> list[str]:
    """The names that `files` will have in an empty user_uploads."""
    taken: list[str] = []
    for file in files:
        name = safe_name(file.name or "")
        taken.append(next(other for other in _numbered(name) if other not in taken))
    return taken


def _uploads_of(thread: Thread) -> tuple[FileBackend, str]:
    if has_workspace(thread):
        assign_sandbox_uid(thread)
        workspace = open_workspace(workspace_location(thread))
        root = workspace.directories["user_uploads"]
        return TreeBackend(root, uid=workspace.uid, gid=workspace.gid), ""
    store = DatabaseFileStore(thread.pk, in_transaction, lambda: None)
    return StateFilesystemBackend(store), "/user_uploads"


def _check_room(backend: FileBackend, top: str, files: Sequence[UploadedFile[Any]]) -> None:
    settings = vel_settings()
    count, size = len(files), sum(file.size or 0 for file in files)
    try:
        for entry in backend.walk(top or "/", Budget(FileLimits()), depth=1):
            found = backend.stat(entry.path)
            count += 1
            size += found.size if found else 0
    except FileMissing:
        pass  # the first upload
    if count > settings.UPLOAD_FILES or size > settings.UPLOAD_BYTES:
        raise InvalidRequest(
            f"With these the thread would have {count} uploads with {size:,} bytes; it takes "
            f"{settings.UPLOAD_FILES} with {settings.UPLOAD_BYTES:,}.",
            code="upload_too_large",
        )


def _store(backend: FileBackend, top: str, file: UploadedFile[Any]) -> Upload:
    data = file.read()
    for name in _numbered(safe_name(file.name or "")):
        try:
            backend.write_bytes(f"{top}/{name}", data, if_version=ABSENT)
        except FileChanged:
            continue  # the name is taken
        return Upload(f"{top or UPLOADS}/{name}", len(data))
    raise Conflict(f"There are {TRIES} files of this name: use another.", code="upload_failed")


def _numbered(name: str) -> Iterable[str]:
    yield name
    stem, dot, suffix = name.rpartition(".")
    if not dot:
        stem, suffix = name, ""
    for number in range(2, TRIES):
        yield f"{stem}-{number}{dot}{suffix}"
