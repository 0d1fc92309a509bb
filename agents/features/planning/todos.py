"""The to-do list of a thread, as rows."""

from __future__ import annotations

from datetime import UTC, datetime

from agents.features.planning.models import Todo, TodoHeading
from agents.features.planning.todo_list import Plan, TodoItem


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
