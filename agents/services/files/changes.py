"""The files that a call, a turn or a restore has changed, for display."""

from __future__ import annotations

import os
from dataclasses import dataclass

from agents.models import WorkspaceSnapshot
from agents.review.matching import LINE_STEPS, Steps, unified_lines
from agents.services.errors import Conflict, NotFound
from agents.services.files.snapshots import snapshot_store
from agents.services.files.stored_snapshots import StorageFailed
from sandbox.backends.names import shown
from sandbox.paths import SANDBOX_ROOT
from sandbox.snapshots import (
    Change,
    Manifest,
    Node,
    SnapshotLost,
    SnapshotStore,
    compare,
)

MAX_FILES = 500
MAX_DIFFS = 50
DIFF_BYTES = 200_000
"""Larger files are not compared line by line."""
DIFF_LINES = 2_000
MAX_DIFF_CHARACTERS = 500_000
"""The limit of all diffs of one response together."""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A changed file. `what` is added, changed or deleted; sizes are in bytes, None for no file.

    `diff` is a unified diff of a small text. `note` says why content was not kept.
    """

    path: str
    kind: str
    what: str
    size_before: int | None
    size_after: int | None
    diff: str | None
    note: str


@dataclass(frozen=True, slots=True)
class FileChanges:
    files: list[ChangedFile]
    total: int
    """The number of all changed files; `files` may contain fewer."""


def steps_of_turn(thread_id: str, run_id: str, turn: int) -> tuple[str, str]:
    """Return the states before and after a turn.

    Raises `NotFound` if the turn changed no files, or if its states are no longer kept.
    """
    rows = list(
        WorkspaceSnapshot.objects.filter(thread_id=thread_id, run_id=run_id, turn=turn)
        .order_by("pk")
        .values_list("base", "manifest")
    )
    if not rows:
        raise NotFound(
            "No change of this turn is kept: it changed no files, or it was too long ago.",
            code="unknown_snapshot",
        )
    return rows[0][0], rows[-1][1]


def changes_between(thread_id: str, base: str, manifest: str) -> FileChanges:
    """Return the differences of two states, for at most `MAX_FILES` files.

    Only the first `MAX_DIFFS` have diffs. Raises `NotFound` if a state is no longer kept, and
    `Conflict` if the storage of several hosts cannot be read.
    """
    store = snapshot_store(thread_id)
    changes = compare(load_state(store, base), load_state(store, manifest))
    files, room, steps = [], MAX_DIFF_CHARACTERS, Steps(LINE_STEPS)
    for number, change in enumerate(changes[:MAX_FILES]):
        diff = _diff(store, change, steps) if number < MAX_DIFFS else None
        if diff is not None:
            room -= len(diff)
        files.append(_shown(change, diff if room >= 0 else None))
    return FileChanges(files, len(changes))


def load_state(store: SnapshotStore, digest: str) -> Manifest:
    try:
        return store.load(digest)
    except SnapshotLost as error:
        raise NotFound(str(error), code="unknown_snapshot") from error
    except StorageFailed as error:
        raise Conflict(
            f"The files of another host cannot be read now: {error}", code="files_elsewhere"
        ) from error


def shown_path(path: str) -> str:
    """Return a manifest's path as the file tools write it. Bytes that are not UTF-8 are escaped."""
    return f"{SANDBOX_ROOT}/{shown(os.fsencode(path).decode(errors='backslashreplace'))}"


def _shown(change: Change, diff: str | None) -> ChangedFile:
    last = change.after or change.before
    assert last is not None
    reasons = [node.reason for node in (change.before, change.after) if node and node.reason]
    return ChangedFile(
        shown_path(change.path),
        last.kind,
        change.what,
        change.before.size if change.before else None,
        change.after.size if change.after else None,
        diff,
        f"not kept: {reasons[-1]}" if reasons else "",
    )


def text_diff(before: bytes, after: bytes, steps: Steps) -> str | None:
    """Return a unified diff without a header, None if one of the contents is not a small text.

    `steps` limits the work of all diffs that share it.
    """
    if max(len(before), len(after)) > DIFF_BYTES or b"\0" in before + after:
        return None
    try:
        old, new = before.decode().splitlines(), after.decode().splitlines()
    except UnicodeDecodeError:
        return None
    if max(len(old), len(new)) > DIFF_LINES:
        return None
    return "\n".join(unified_lines(old, new, steps))


def _diff(store: SnapshotStore, change: Change, steps: Steps) -> str | None:
    before, after = _text(store, change.before), _text(store, change.after)
    if before is None or after is None or before == after:
        return None
    return text_diff(before, after, steps)


def _text(store: SnapshotStore, node: Node | None) -> bytes | None:
    """Return the content of a small file, empty for a missing one."""
    if node is None:
        return b""
    if node.kind != "file" or node.reason or node.size > DIFF_BYTES:
        return None
    return store.read(node.content, DIFF_BYTES + 1)
