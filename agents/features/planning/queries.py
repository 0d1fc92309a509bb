"""The to-do list of a thread at some point of its conversation."""

from __future__ import annotations

import json
from typing import Any

from agents.features.planning.events import TodosUpdated
from agents.features.planning.todo_list import WRITE
from agents.models import Run, RunEvent, ToolCall
from agents.states import ToolCallStatus


def list_after(run: Run, turn: int | None = None) -> dict[str, Any]:
    """Return `current_task` and `todos` after a turn, in the form of `Plan.data`.

    If `turn` is None, at the end of the run, or now. The list belongs to the whole thread.
    """
    own = RunEvent.objects.filter(run=run.pk, type=TodosUpdated.type).order_by("seq")
    found = _last(own) if turn is None else _until(own, run, turn)
    if found is None:
        before = RunEvent.objects.filter(
            run__thread=run.thread_id, run__number__lt=run.number, type=TodosUpdated.type
        )
        found = _last(before.order_by("run__number", "seq")) or {}
    return {
        "current_task": found.get("current_task", ""),
        "todos": found.get("todos", []),
    }


def _last(events: Any) -> dict[str, Any] | None:
    event = events.last()
    return dict(json.loads(event.data)) if event is not None else None


def _until(events: Any, run: Run, turn: int) -> dict[str, Any] | None:
    """Return the data of the last event before the first of a later call."""
    calls = ToolCall.objects.filter(
        run=run.pk, turn__lte=turn, tool=WRITE, status=ToolCallStatus.SUCCEEDED
    )
    ids = set(calls.values_list("call_id", flat=True))
    found = None
    for text in events.values_list("data", flat=True):
        data = json.loads(text)
        if data["call_id"] is not None and data["call_id"] not in ids:
            break
        found = data
    return found
