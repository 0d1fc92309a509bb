"""The files that a run has created or changed, and their present sizes."""

from __future__ import annotations

from dataclasses import dataclass

from agents.models import Run
from agents.selectors.artifacts import MAX_FILES, steps_of, written_paths
from agents.services.errors import NotFound
from agents.services.files.changes import load_state, shown_path
from agents.services.files.snapshots import snapshot_store
from agents.services.files.thread_files import has_workspace, readable_files
from sandbox.errors import FileError
from sandbox.snapshots import compare


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
    """Return the files that the run created or changed, without deleted ones, by path."""
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
