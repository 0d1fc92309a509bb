"""The to-do list of a thread: validation and storage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from agents.features.planning.events import Todo as TodoData
from agents.features.planning.models import Todo, TodoStatus

MAX_ITEMS = 200
_ALIASES = {"done": TodoStatus.COMPLETED.value}
_BOXES = {
    TodoStatus.PENDING: "[ ]",
    TodoStatus.IN_PROGRESS: "[~]",
    TodoStatus.COMPLETED: "[x]",
    TodoStatus.BLOCKED: "[!]",
}


class TodoError(ValueError):
    """A list that cannot be stored. The message contains the remedy."""


@dataclass(frozen=True, slots=True)
class TodoDraft:
    content: str
    status: str = TodoStatus.PENDING.value
    active_form: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class TodoDelta:
    """Changes to a list: ids are `todo_N`, N from 0. `blocked` maps an id to the reason."""

    current_task: str = ""
    next_steps: list[str] = field(default_factory=list)
    completed: list[str] = field(default_factory=list)
    blocked: dict[str, str] = field(default_factory=dict)


def check_todos(drafts: Sequence[TodoDraft]) -> list[TodoDraft]:
    """Return the list in its stored form. Raises `TodoError`."""
    if len(drafts) > MAX_ITEMS:
        raise TodoError(f"The list has {len(drafts)} items and may have {MAX_ITEMS}: shorten it.")
    checked = []
    for number, draft in enumerate(drafts, start=1):
        status = _ALIASES.get(draft.status, draft.status)
        if status not in TodoStatus.values:
            raise TodoError(
                f"Item {number} has status {draft.status!r}: use {', '.join(TodoStatus.values)}."
            )
        if not draft.content.strip():
            raise TodoError(f"Item {number} is empty: say what is to be done.")
        checked.append(replace(draft, status=status))
    busy = [draft.content for draft in checked if draft.status == TodoStatus.IN_PROGRESS]
    if len(busy) > 1:
        raise TodoError(f"{len(busy)} items are in_progress; keep exactly one in_progress.")
    return checked


def apply_delta(present: Sequence[TodoDraft], delta: TodoDelta) -> list[TodoDraft]:
    """Return the list after the changes. Raises `TodoError` for an unknown id."""
    drafts = list(present)

    def place(todo_id: str) -> int:
        number = todo_id.removeprefix("todo_")
        if not number.isdecimal() or int(number) >= len(drafts):
            raise TodoError(
                f"There is no item {todo_id!r}; ids are todo_0 to todo_{len(drafts) - 1}."
            )
        return int(number)

    for todo_id in delta.completed:
        number = place(todo_id)
        drafts[number] = replace(drafts[number], status=TodoStatus.COMPLETED.value)
    for todo_id, reason in delta.blocked.items():
        number = place(todo_id)
        drafts[number] = replace(drafts[number], status=TodoStatus.BLOCKED.value, note=reason)
    drafts += [TodoDraft(step) for step in delta.next_steps]
    if delta.current_task:
        known = next(
            (n for n, draft in enumerate(drafts) if draft.content == delta.current_task), None
        )
        drafts = [
            replace(draft, status=TodoStatus.PENDING.value)
            if draft.status == TodoStatus.IN_PROGRESS
            else draft
            for draft in drafts
        ]
        if known is None:
            drafts.append(TodoDraft(delta.current_task, TodoStatus.IN_PROGRESS.value))
        else:
            drafts[known] = replace(drafts[known], status=TodoStatus.IN_PROGRESS.value)
    return drafts


def read_todos(thread_id: str) -> list[TodoDraft]:
    return [
        TodoDraft(todo.content, todo.status, todo.active_form, todo.note)
        for todo in Todo.objects.filter(thread_id=thread_id).order_by("position")
    ]


def store_todos(thread_id: str, drafts: Sequence[TodoDraft]) -> None:
    """Replace the thread's list, in the caller's transaction."""
    Todo.objects.filter(thread_id=thread_id).delete()
    Todo.objects.bulk_create(
        Todo(
            thread_id=thread_id,
            position=number,
            content=draft.content,
            active_form=draft.active_form,
            status=draft.status,
            note=draft.note,
        )
        for number, draft in enumerate(drafts)
    )


def todos_as_markdown(drafts: Sequence[TodoDraft]) -> str:
    """Return a line for each item: `[ ]` pending, `[~]` in progress, `[x]` done, `[!]` blocked."""
    lines = []
    for draft in drafts:
        lines.append(f"- {_BOXES[TodoStatus(draft.status)]} {draft.content}")
        if draft.note:
            lines.append(f"  - {draft.note}")
    return "\n".join(lines)


def drafts_from(todos: Iterable[TodoData]) -> list[TodoDraft]:
    """Return the drafts of a result of `todos_as_data`."""
    return [
        TodoDraft(todo["content"], todo["status"], todo["active_form"], todo["note"])
        for todo in todos
    ]


def todos_as_data(drafts: Sequence[TodoDraft]) -> list[TodoData]:
    return [
        {
            "id": f"todo_{number}",
            "content": draft.content,
            "status": draft.status,
            "active_form": draft.active_form,
            "note": draft.note,
        }
        for number, draft in enumerate(drafts)
    ]
