"""The file contents that the agent and each subagent of a thread have seen, as rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from agents.models import Run, SeenFile

MAX_FILES = 2_000
"""The limit of files stored for one reader; the oldest ones are deleted first."""


class DatabaseSeenFiles:
    """`sandbox.backends.SeenFiles` of one reader in a thread.

    All root runs of a thread are one reader; each run of a subagent is another.
    `call` runs a function in a transaction. Writes start with `check`, which raises an error if the
    writer no longer has the right to write. A reader has one active run at a time, so loaded values
    are valid until this object changes them.
    """

    def __init__(
        self, thread_id: str, run_id: str, call: Callable[..., Any], check: Callable[[], object]
    ) -> None:
        self._thread_id = thread_id
        self._run_id = run_id
        self._call = call
        self._check = check
        self._reader = ""
        self._known: dict[str, str] | None = None

    def get(self, path: str) -> str | None:
        return self._loaded().get(_hash(path))

    def put(self, path: str, content_hash: str | None) -> None:
        known, path_hash = self._loaded(), _hash(path)
        if known.get(path_hash) == content_hash:
            return
        self._call(self._write, path_hash, content_hash)
        if content_hash is None:
            known.pop(path_hash, None)
        else:
            known[path_hash] = content_hash

    def _loaded(self) -> dict[str, str]:
        if self._known is None:
            self._reader, self._known = self._call(_read, self._thread_id, self._run_id)
        return self._known

    def _write(self, path_hash: str, content_hash: str | None) -> None:
        self._check()
        mine = SeenFile.objects.filter(thread_id=self._thread_id, reader=self._reader)
        if content_hash is None:
            mine.filter(path_hash=path_hash).delete()
            return
        SeenFile.objects.update_or_create(
            thread_id=self._thread_id,
            reader=self._reader,
            path_hash=path_hash,
            defaults={"content_hash": content_hash},
        )
        if self._known is not None and len(self._known) >= MAX_FILES:
            kept = mine.order_by("-seen_at", "-pk").values_list("pk", flat=True)[:MAX_FILES]
            mine.exclude(pk__in=list(kept)).delete()


def _read(thread_id: str, run_id: str) -> tuple[str, dict[str, str]]:
    parent = Run.objects.values_list("parent_id", flat=True).get(pk=run_id)
    reader = run_id if parent else ""
    rows = SeenFile.objects.filter(thread_id=thread_id, reader=reader)
    return reader, dict(rows.values_list("path_hash", "content_hash"))


def used_by_other_subagents(family: str, run_id: str, path: str) -> bool:
    """Return whether another subagent of the family has read or written the path during the run.

    `family` is the id of the family's first thread. A path must mean the same file for all of it.
    """
    begun = Run.objects.values_list("created_at", flat=True).get(pk=run_id)
    rows = SeenFile.objects.filter(
        thread__root=family, path_hash=_hash(path), seen_at__gte=begun
    ).exclude(content_hash="")
    return rows.exclude(reader__in=("", run_id)).exists()


def _hash(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()
