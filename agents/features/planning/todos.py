"""The to-do list of a thread: its rows, and its events, which pages and forks read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from agents.events.append import append_events
from agents.features.planning.events import TodosUpdated
from agents.features.planning.models import Todo, TodoHeading
from agents.features.planning.todo_list import WRITE, Plan, TodoItem
from agents.models import Run, RunEvent, ToolCall
from agents.states import ToolCallStatus


def read_plan(thread_id: str) -> Plan:
    rows = Todo.objects.filter(thread_id=thread_id).order_by("position")
    heading = TodoHeading.objects.filter(thread_id=thread_id)
    return Plan(
        tuple(map(_item, rows)), heading.values_list("current_task", flat=True).first() or ""
    )


def store_plan(thread_id: str, plan: Plan) -> None:
    """Replace the thread's list by a checked one, in the caller's transaction."""
    Todo.objects.filter(thread_id=thread_id).delete()
    Todo.objects.bulk_create(
        Todo(
            thread_id=thread_id,
            position=number,
            content=item.content,
            active_form=item.active_form,
            status=item.status,
            note=item.note,
            created_at=datetime.fromisoformat(item.created_at),
            updated_at=datetime.fromisoformat(item.updated_at),
            completed_at=item.completed_at and datetime.fromisoformat(item.completed_at),
        )
        for number, item in enumerate(plan.items)
    )
    TodoHeading.objects.filter(thread_id=thread_id).delete()
    if plan.current_task:
        TodoHeading.objects.create(thread_id=thread_id, current_task=plan.current_task)


def give(thread_id: str, plan: Plan) -> None:
    """Replace the list of a thread outside of its runs, with an event in its last run.

    The thread must have a run.
    """
    last = Run.objects.filter(thread=thread_id).order_by("-number").values_list("pk", flat=True)
    append_events(last[0], [TodosUpdated(call_id=None, **plan.data())])
    store_plan(thread_id, plan)


def list_after(run: Run, turn: int | None = None) -> dict[str, Any]:
    """Return `current_task` and `todos` after a turn of `run`, in the form of `Plan.data`.

    `turn` is None for the end of the run, or for now if the run has not ended. If the run has not
    changed the list by then, return the list of the thread's earlier runs.
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


def _item(row: Todo) -> TodoItem:
    return TodoItem(
        f"todo_{row.position}",
        row.content,
        row.status,
        active_form=row.active_form,
        note=row.note,
        created_at=_text(row.created_at),
        updated_at=_text(row.updated_at),
        completed_at=_text(row.completed_at) if row.completed_at is not None else None,
    )


def _text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()
