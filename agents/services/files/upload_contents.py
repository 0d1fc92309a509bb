"""The place of uploads: a directory that is read-only for commands, or rows without a sandbox.

For several hosts, uploads are rows that every host can read. The driver copies them into the
workspace when its run starts (`thread_transfer.receiving`). On the host of the workspace they are
there immediately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from agents.models import Thread, Upload, UploadContent
from agents.services.files.state_files import MAX_FILE_BYTES, DatabaseFileStore
from agents.services.files.workspaces import WorkspaceLocation, open_workspace, workspace_location
from agents.services.placement import is_current, is_elsewhere
from agents.settings import UploadSettings
from sandbox.backends import StateFilesystemBackend, TreeBackend
from sandbox.backends.protocol import ABSENT, Entry
from sandbox.errors import FileMissing
from sandbox.paths import SANDBOX_ROOT

UPLOADS = f"{SANDBOX_ROOT}/user_uploads"
_ROWS = "/user_uploads"


class UploadFiles:
    """The files of one thread's user_uploads by their names. Its methods raise `FileError`."""

    def __init__(self, backend: TreeBackend | StateFilesystemBackend) -> None:
        self._backend = backend
        self._top = "" if isinstance(backend, TreeBackend) else _ROWS

    @property
    def most_bytes(self) -> int | None:
        """The size limit of one file in bytes, if there is one."""
        return None if isinstance(self._backend, TreeBackend) else MAX_FILE_BYTES

    def shown(self, name: str) -> str:
        """Return the path of a file as the agent sees it."""
        return f"{self._top or UPLOADS}/{name}"

    def entries(self) -> list[Entry]:
        try:
            return self._backend.list_directory(self._top or "/").entries
        except FileMissing:
            return []  # the first upload

    def read(self, name: str, max_bytes: int) -> bytes:
        return self._backend.read_bytes(f"{self._top}/{name}", max_bytes)

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """Store a new file, completely or not at all. Raises `FileChanged` if the name exists."""
        path = f"{self._top}/{name}"
        if isinstance(self._backend, TreeBackend):
            self._backend.write_chunks(path, chunks, if_version=ABSENT)
        else:
            self._backend.write_bytes(path, b"".join(chunks), if_version=ABSENT)

    def settle(self, rows: Sequence[Upload]) -> None:
        """Receive the stored rows of the new files."""

    def replace(self, name: str, data: bytes) -> None:
        """Store a file with this content, new or existing. Never writes through a link."""
        self._backend.write_bytes(f"{self._top}/{name}", data)

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        if isinstance(self._backend, TreeBackend):
            self._backend.remove(f"/{name}")
            return
        with suppress(KeyError):
            del self._backend.store[f"{self._top}/{name}"]


def directory_uploads(location: WorkspaceLocation) -> UploadFiles:
    """Return the uploads of a workspace. Creates the workspace's directories if necessary.

    Raises:
        SandboxSetupError: The directories cannot be created or opened.
    """
    workspace = open_workspace(location)
    root = workspace.directories["user_uploads"]
    return UploadFiles(TreeBackend(root, uid=workspace.uid, gid=workspace.gid))


def row_uploads(
    thread_id: str, call: Callable[..., Any], check: Callable[[], object]
) -> UploadFiles:
    """Return the uploads of a thread whose files are rows; see `DatabaseFileStore`."""
    return UploadFiles(StateFilesystemBackend(DatabaseFileStore(thread_id, call, check)))


class UploadContents(UploadFiles):
    """The uploads of one thread as rows, by their names. Use an object in one transaction only."""

    def __init__(self, thread: Thread) -> None:
        self._thread = thread
        self._new: dict[str, bytes] = {}
        here = not is_elsewhere(thread) and is_current(thread.pk, thread.placement)
        self._directory = directory_uploads(workspace_location(thread)) if here else None

    @property
    def most_bytes(self) -> int | None:
        return None

    def shown(self, name: str) -> str:
        return f"{UPLOADS}/{name}"

    def entries(self) -> list[Entry]:
        rows = Upload.objects.filter(thread=self._thread)
        found = [Entry(UPLOADS, row.name, "file", row.size) for row in rows]
        renditions = [Entry(UPLOADS, row.rendition, "file", 0) for row in rows if row.has_rendition]
        return found + renditions

    def read(self, name: str, max_bytes: int) -> bytes:
        row = UploadContent.objects.filter(upload__thread=self._thread, upload__name=name).first()
        if row is None:
            raise FileMissing("there is no such upload.", name)
        return bytes(row.data[:max_bytes])

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        self._new[name] = b"".join(chunks)
        if self._directory is not None:
            self._directory.replace(name, self._new[name])

    def settle(self, rows: Sequence[Upload]) -> None:
        UploadContent.objects.bulk_create(
            UploadContent(upload=row, data=self._new[row.name]) for row in rows
        )

    def remove(self, name: str) -> None:
        """Remove the file. The row of its content is deleted with the upload's row."""
        self._new.pop(name, None)
        if self._directory is not None:
            with suppress(FileMissing):
                self._directory.remove(name)


def keep_rendition(upload: Upload, data: bytes) -> None:
    """Store the Markdown that this host created for all hosts, if the content has a row."""
    UploadContent.objects.filter(upload=upload).update(rendition=data)


def copy_contents(copies: dict[str, str]) -> None:
    """Copy the contents of uploads for a fork. `copies` maps new rows' ids to old ones."""
    for new, old in copies.items():
        content = UploadContent.objects.filter(pk=old).first()
        if content is not None:
            content.pk = new
            content.save(force_insert=True)


def without_contents(thread_id: str) -> dict[str, str]:
    """Return uploads without content rows, from a time with a single host: ids by name."""
    rows = Upload.objects.filter(thread=thread_id, content=None)
    return dict(rows.values_list("name", "pk"))


def add_contents(
    location: WorkspaceLocation, lacking: Mapping[str, str], call: Callable[..., object]
) -> None:
    """Store contents of these uploads for all hosts, from a workspace on this host. Blocks.

    `lacking` is a result of `without_contents`. `call` runs a function in a transaction.
    """
    files = directory_uploads(location)
    for name, upload_id in lacking.items():
        with suppress(FileMissing):  # also missing on this host
            data = files.read(name, UploadSettings.now().UPLOAD_BYTES)
            call(_add_content, upload_id, data)


def _add_content(upload_id: str, data: bytes) -> None:
    if Upload.objects.filter(pk=upload_id).exists():
        UploadContent.objects.get_or_create(pk=upload_id, defaults={"data": data})
