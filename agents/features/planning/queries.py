"""The to-do list of a thread at some point of its conversation."""

from __future__ import annotations

import json
from typing import Any

from agents.features.planning.events import Todo, TodosUpdated
from agents.models import Run, RunEvent, ToolCall
from agents.states import ToolCallStatus

TOOL = "write_todos"


def todos_after(run: Run, turn: int | None = None) -> list[Todo]:
    """Return the items after a turn, as `{id, content, status, active_form, note}`.

    If `turn` is None, at the end of the run, or now. The list belongs to the whole thread.
    """
    own = RunEvent.objects.filter(run=run.pk, type=TodosUpdated.type).order_by("seq")
    if turn is not None:
        # Each call that changed the list has one event.
        calls = ToolCall.objects.filter(
            run=run.pk, turn__lte=turn, tool=TOOL, status=ToolCallStatus.SUCCEEDED
        )
        own = own[: calls.count()]
    events = list(own.values_list("data", flat=True)) if turn is not None else _last(own)
    if not events:
        before = RunEvent.objects.filter(
            run__thread=run.thread_id, run__number__lt=run.number, type=TodosUpdated.type
        )
        events = _last(before.order_by("run__number", "seq"))
    return list(json.loads(events[-1])["todos"]) if events else []


def _last(events: Any) -> list[str]:
    found = events.last()
    return [found.data] if found is not None else []
