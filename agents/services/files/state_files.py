"""Files of threads without a sandbox, as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from django.db import connection
from django.db.models import Sum
from django.db.models.functions import Length

from agents.disk_space import is_short
from agents.models import StateFile
from sandbox.backends.state import StateFilesystemBackend, StoredFile
from sandbox.errors import FileError, FileTooLarge, StorageFull

T = TypeVar("T")

MAX_BYTES = 64 * 1024**2
MAX_FILES = 10_000
MAX_PATH = 1_000
MAX_FILE_BYTES = 20_000_000
"""The limit of one file, which is in memory several times when it is stored. Long results need this
size."""


class DatabaseFileStore:
    """`sandbox.backends.state.FileStore` over `StateFile`.

    `call` runs a function in a transaction. Writing functions start with `check`, which raises an
    error if the writer no longer has the right to write.
    """

    def __init__(self, thread_id: str, call: Callable[..., T], check: Callable[[], object]) -> None:
        self._thread_id = thread_id
        self._call: Callable[..., object] = call
        self._check = check

    def __getitem__(self, path: str) -> bytes:
        content = self._call(_read, self._thread_id, path)
        if content is None:
            raise KeyError(path)
        assert isinstance(content, bytes)
        return content

    def __setitem__(self, path: str, data: bytes) -> None:
        self._call(self._write, path, data)

    def __delitem__(self, path: str) -> None:
        if not self._call(self._delete, path):
            raise KeyError(path)

    def info(self, path: str) -> StoredFile | None:
        found = self._call(_scan, self._thread_id, path, True)
        assert isinstance(found, list)
        return found[0] if found else None

    def scan(self, prefix: str) -> Iterable[StoredFile]:
        found = self._call(_scan, self._thread_id, prefix, False)
        assert isinstance(found, list)
        return found

    def _write(self, path: str, data: bytes) -> None:
        self._check()
        if len(data) > MAX_FILE_BYTES:
            raise FileTooLarge(
                f"{len(data):,} bytes. Without a sandbox a file may have {MAX_FILE_BYTES:,}: "
                "divide it.",
                path,
            )
        others = StateFile.objects.filter(thread_id=self._thread_id).exclude(path=path)
        used = others.aggregate(total=Sum(Length("content")))["total"] or 0
        if used + len(data) > MAX_BYTES or others.count() >= MAX_FILES:
            raise StorageFull(
                f"no room left: {MAX_BYTES:,} bytes and {MAX_FILES:,} files are kept. "
                "Make other files shorter.",
                path,
            )
        if connection.vendor == "sqlite" and is_short(len(data)):
            raise StorageFull(
                "no room left on the disk of the database. Delete files that are not needed, or "
                "ask the operator to make room.",
                path,
            )
        StateFile.objects.update_or_create(
            thread_id=self._thread_id, path=path, defaults={"content": data}
        )

    def _delete(self, path: str) -> bool:
        self._check()
        return bool(StateFile.objects.filter(thread_id=self._thread_id, path=path).delete()[0])


def check_files(files: Mapping[str, bytes]) -> None:
    """Raise `ValueError` if these files cannot be all files of a thread."""
    total = sum(map(len, files.values()))
    if total > MAX_BYTES or len(files) > MAX_FILES:
        raise ValueError(
            f"{len(files):,} files with {total:,} bytes. {MAX_FILES:,} files with {MAX_BYTES:,} "
            "bytes are kept: leave some out."
        )
    backend = StateFilesystemBackend()
    for path, content in files.items():
        if len(content) > MAX_FILE_BYTES:
            raise ValueError(f"{path} has {len(content):,} bytes and may have {MAX_FILE_BYTES:,}.")
        try:
            is_canonical = backend.resolve(path) == path != "/"
        except FileError as error:
            raise ValueError(str(error)) from None
        if not is_canonical or len(path) > MAX_PATH:
            raise ValueError(f"{path!r} is no absolute path in its shortest form.")
        parts = path.split("/")
        above = next(
            ("/".join(parts[:n]) for n in range(2, len(parts)) if "/".join(parts[:n]) in files),
            None,
        )
        if above is not None:
            raise ValueError(f"{above!r} is a file, and {path!r} is below it.")


def replace_files(thread_id: str, files: Mapping[str, bytes]) -> None:
    """Make checked files the only ones of a thread, in the caller's transaction."""
    present = StateFile.objects.filter(thread_id=thread_id)
    rows = {row.path: row for row in present}
    gone = [row.pk for path, row in rows.items() if path not in files]
    present.filter(pk__in=gone).delete()
    for path, content in files.items():
        if path not in rows or bytes(rows[path].content) != content:
            StateFile.objects.update_or_create(
                thread_id=thread_id, path=path, defaults={"content": content}
            )


def _read(thread_id: str, path: str) -> bytes | None:
    row = StateFile.objects.filter(thread_id=thread_id, path=path).first()
    return bytes(row.content) if row else None


def _scan(thread_id: str, path: str, exact: bool) -> list[StoredFile]:
    rows = StateFile.objects.filter(thread_id=thread_id)
    if exact:
        rows = rows.filter(path=path)
    elif path != "/":
        # Not LIKE: on SQLite it ignores case, and `%` in a path would match anything.
        rows = rows.filter(path__gte=path, path__lt=path[:-1] + chr(ord("/") + 1))
    return [
        StoredFile(row.path, row.size, row.created_at.timestamp(), row.updated_at.timestamp())
        for row in rows.annotate(size=Length("content")).defer("content")
    ]
