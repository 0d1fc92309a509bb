"""Queries for the files that a run has created or changed."""

from __future__ import annotations

import json
from dataclasses import dataclass

from agents.models import Run, SnapshotCause, ToolCall, WorkspaceSnapshot
from agents.states import ToolCallStatus

MAX_FILES = 1_000
WRITING_TOOLS = ("write_file", "edit_file")


@dataclass(frozen=True, slots=True)
class Step:
    """The states before and after a call that changed files."""

    base: str
    manifest: str


def steps_of(run: Run) -> list[Step]:
    """Return the recorded changes of the run's calls, in order."""
    rows = WorkspaceSnapshot.objects.filter(run=run, cause=SnapshotCause.CALL).order_by("pk")
    return [Step(*row) for row in rows.values_list("base", "manifest")]


def written_paths(run: Run) -> list[str]:
    """Return the paths that file tools wrote, in the form of the calls' inputs.

    Each path once, in the order of the first writes, at most `MAX_FILES`. Used for threads without
    a workspace.
    """
    calls = ToolCall.objects.filter(
        run=run, tool__in=WRITING_TOOLS, status=ToolCallStatus.SUCCEEDED, is_error=False
    )
    found: dict[str, None] = {}
    for arguments, edited in calls.order_by("turn", "position").values_list(
        "input", "edited_input"
    ):
        fields = json.loads(edited or arguments)
        path = fields.get("path", fields.get("file_path"))
        if isinstance(path, str):
            found[path] = None
    return list(found)[:MAX_FILES]
