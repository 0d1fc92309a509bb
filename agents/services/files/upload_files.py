"""The place of uploads: a directory that is read-only for commands, or rows without a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from agents.models import Upload
from agents.services.files.state_files import MAX_FILE_BYTES, DatabaseFileStore
from agents.services.files.workspaces import WorkspaceLocation, open_workspace
from sandbox.backends import StateFilesystemBackend, TreeBackend
from sandbox.backends.protocol import ABSENT, Entry
from sandbox.errors import FileMissing
from sandbox.paths import SANDBOX_ROOT

UPLOADS = f"{SANDBOX_ROOT}/user_uploads"
_ROWS = "/user_uploads"


class UploadFiles:
    """The files of one thread's user_uploads by their names. Raises `FileError`."""

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
    """Return the uploads of a workspace, created if necessary. Raises `SandboxSetupError`."""
    workspace = open_workspace(location)
    root = workspace.directories["user_uploads"]
    return UploadFiles(TreeBackend(root, uid=workspace.uid, gid=workspace.gid))


def row_uploads(
    thread_id: str, call: Callable[..., Any], check: Callable[[], object]
) -> UploadFiles:
    """Return the uploads of a thread whose files are rows; see `DatabaseFileStore`."""
    return UploadFiles(StateFilesystemBackend(DatabaseFileStore(thread_id, call, check)))
