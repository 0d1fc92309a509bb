"""To-do lists without rows: items, checks, changes, texts, and the inputs of the tools.

The tools of agents and the class of Python programs use these functions. Nothing here needs Django.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

STATUSES = ("pending", "in_progress", "completed", "blocked")
MAX_ITEMS = 200
MAX_CHARACTERS = 2_000
"""Limit of each text of an item, and of the current task."""
_ALIASES = {"done": "completed"}
_BOXES = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]", "blocked": "[!]"}
_TEXTS = ("content", "active_form", "note")
_TIMES = ("created_at", "updated_at", "completed_at")


class TodoError(ValueError):
    """A list that cannot be stored. The message contains the remedy."""


@dataclass(init=False)
class TodoItem:
    """One task. `status` is pending, in_progress, completed or blocked; `done` means completed.

    Its id is `todo_` and its position, from 0. Times are ISO 8601 in UTC; empty: set by the list.

    >>> TodoItem("todo_0", "Read the report").to_dict()["status"]
    'pending'
    """

    id: str
    content: str
    status: str
    active_form: str
    note: str
    created_at: str
    updated_at: str
    completed_at: str | None

    def __init__(
        self,
        id: str = "",
        content: str = "",
        status: str = "pending",
        *,
        active_form: str = "",
        note: str = "",
        created_at: str = "",
        updated_at: str = "",
        completed_at: str | None = None,
        task: str | None = None,
        notes: str | None = None,
    ) -> None:
        """`task` and `notes` are other names of `content` and `note`."""
        self.id = id
        self.content = content if task is None else task
        self.status = status
        self.active_form = active_form
        self.note = note if notes is None else notes
        self.created_at, self.updated_at = created_at, updated_at
        self.completed_at = completed_at

    @property
    def task(self) -> str:
        """The content."""
        return self.content

    @property
    def notes(self) -> str:
        """The note."""
        return self.note

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Plan:
    """A list. `current_task` is its heading, and no item."""

    items: Sequence[TodoItem] = ()
    current_task: str = ""

    def data(self) -> dict[str, Any]:
        """Return it as JSON: the state of a session, and the data of the event."""
        items = [item.to_dict() for item in self.items]
        return {"current_task": self.current_task, "todos": items}


@dataclass(frozen=True, slots=True)
class TodoDelta:
    """Changes to a list: ids with their notes. A `current_task` of None stays."""

    current_task: str | None = None
    next_steps: Sequence[str] = ()
    completed: Mapping[str, str] = field(default_factory=dict)
    """An empty note keeps the present one."""
    blocked: Mapping[str, str] = field(default_factory=dict)


def checked(plan: Plan, before: Plan | None = None) -> Plan:
    """Return a list in its stored form, with the ids and times of its items. Raises `TodoError`.

    An item with the content of one in `before` keeps its times; `updated_at` is new if it has
    changed.
    """
    if len(plan.items) > MAX_ITEMS:
        raise TodoError(
            f"Expected at most {MAX_ITEMS} items, got {len(plan.items)}: shorten the list."
        )
    _check_text(plan.current_task, "current_task")
    earlier: dict[str, list[TodoItem]] = {}
    for item in before.items if before is not None else ():
        earlier.setdefault(item.content, []).append(item)
    now = datetime.now(UTC).isoformat()
    items: list[TodoItem] = []
    for at, item in enumerate(plan.items):
        content = getattr(item, "content", None)
        found = earlier.get(content) if isinstance(content, str) else None
        items.append(_checked(item, at, found.pop(0) if found else None, now))
    busy = sum(item.status == "in_progress" for item in items)
    if busy > 1:
        raise TodoError(f"{busy} items are in_progress; keep exactly one in_progress.")
    return Plan(tuple(items), plan.current_task)


def _checked(item: TodoItem, at: int, old: TodoItem | None, now: str) -> TodoItem:
    place = f"Item {at + 1}"
    if not isinstance(item, TodoItem):
        raise TodoError(f"{place} must be a TodoItem.")
    for name in _TEXTS:
        _check_text(getattr(item, name), f"{place}: {name}")
    if item.status not in (*STATUSES, *_ALIASES):
        raise TodoError(f"{place} has status {item.status!r}: use {', '.join(STATUSES)}.")
    status = _ALIASES.get(item.status, item.status)
    if not item.content.strip():
        raise TodoError(f"{place} is empty: describe the task.")
    new = replace(item, id=f"todo_{at}", status=status)
    if old is not None:
        new.created_at = new.created_at or old.created_at
        same = (old.status, old.active_form, old.note) == (status, new.active_form, new.note)
        new.updated_at = old.updated_at if same else now
        new.completed_at = old.completed_at
    new.created_at, new.updated_at = new.created_at or now, new.updated_at or now
    new.completed_at = (new.completed_at or now) if status == "completed" else None
    for name in _TIMES:
        if getattr(new, name) is not None:
            setattr(new, name, _time(getattr(new, name), f"{place}: {name}"))
    return new


def _check_text(text: Any, place: str) -> None:
    if not isinstance(text, str):
        raise TodoError(f"{place} must be a text.")
    if len(text) > MAX_CHARACTERS:
        raise TodoError(
            f"{place} has {len(text):,} characters and may have {MAX_CHARACTERS:,}: shorten it."
        )
    if any(sign == "\0" or "\ud800" <= sign <= "\udfff" for sign in text):
        raise TodoError(f"{place} contains a NUL or a lone surrogate: leave it out.")


def _time(text: Any, place: str) -> str:
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return found.astimezone(UTC).isoformat()
    except (TypeError, ValueError, OverflowError):
        pass
    raise TodoError(f"{place} must be a time with its zone, in the form of ISO 8601.")


def changed(plan: Plan, delta: TodoDelta) -> Plan:
    """Return the list after the changes. Raises `TodoError` for an unknown id.

    An open item with the content `current_task` becomes the only one in progress.
    """
    items = list(plan.items)

    def place(todo_id: str) -> int:
        number = todo_id.removeprefix("todo_")
        if not (number.isascii() and number.isdecimal()) or int(number) >= len(items):
            ids = f"ids are todo_0 to todo_{len(items) - 1}" if items else "the list is empty"
            raise TodoError(f"There is no item {todo_id!r}; {ids}.")
        return int(number)

    for todo_id, note in delta.completed.items():
        number = place(todo_id)
        note = note or items[number].note
        items[number] = replace(items[number], status="completed", note=note)
    for todo_id, reason in delta.blocked.items():
        number = place(todo_id)
        items[number] = replace(items[number], status="blocked", note=reason)
    items += [TodoItem(content=step) for step in delta.next_steps]
    if delta.current_task is None:
        return Plan(items, plan.current_task)
    known = next(
        (
            number
            for number, item in enumerate(items)
            if item.content == delta.current_task and item.status != "completed"
        ),
        None,
    )
    if known is not None:
        items = [
            replace(item, status="pending") if item.status == "in_progress" else item
            for item in items
        ]
        items[known] = replace(items[known], status="in_progress")
    return Plan(items, delta.current_task)


def as_markdown(plan: Plan) -> str:
    """Return a line for each item: `[ ]` pending, `[~]` in progress, `[x]` done, `[!]` blocked.

    A note is a line below its item. Line breaks of texts are spaces.
    """
    lines = []
    if plan.current_task:
        lines += ["## Current Task", _one_line(plan.current_task), "", "## Todo List"]
    for item in plan.items:
        lines.append(f"- {_BOXES[item.status]} {_one_line(item.content)}")
        if item.note:
            lines.append(f"  - {_one_line(item.note)}")
    return "\n".join(lines)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def plan_of(state: Any) -> Plan:
    """Return the list of a result of `Plan.data`, checked. Raises `TodoError`.

    Only the content of an item is required.
    """
    if not isinstance(state, Mapping) or "todos" not in state:
        raise TodoError("todos is missing: give the whole list.")
    if unknown := sorted(set(state) - {"current_task", "todos"}, key=str):
        raise TodoError(f"There is no field {unknown[0]!r}: use current_task and todos.")
    todos = state["todos"]
    if not isinstance(todos, list | tuple):
        raise TodoError("todos must be a list.")
    known = {*_TEXTS, *_TIMES, "id", "status"}
    items = []
    for number, todo in enumerate(todos, start=1):
        if not isinstance(todo, Mapping) or "content" not in todo:
            raise TodoError(f"Item {number} has no content: describe the task.")
        if wrong := sorted(set(todo) - known, key=str):
            raise TodoError(f"Item {number} has a field {wrong[0]!r}: use {', '.join(_TEXTS)}.")
        items.append(TodoItem(**todo))
    return checked(Plan(items, state.get("current_task", "")))


# The tools -----------------------------------------------------------------------------------

WRITE = "write_todos"
READ = "read_todos"
WRITE_DESCRIPTION = (
    "Replace your to-do list. Use it for work of several steps: keep one item in_progress, and "
    "mark each completed as soon as it is really done."
)
READ_DESCRIPTION = "Show your to-do list."
PROMPT = (
    "## Planning\n"
    "For work of several steps, first write the steps with `write_todos`; keep exactly one "
    "in_progress, tick each off when it is done, and change the plan when you learn more. "
    "Skip it for a single simple step."
)


class TodoInput(BaseModel):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    content: str = Field(validation_alias=AliasChoices("content", "task"))
    status: str = Field(default="pending", json_schema_extra={"enum": list(STATUSES)})
    active_form: str = Field("", validation_alias=AliasChoices("active_form", "activeForm"))
    note: str = Field("", validation_alias=AliasChoices("note", "notes"))


class BlockedInput(BaseModel):
    id: str
    reason: str = ""


class WriteTodosInput(BaseModel):
    """`todos` replaces the list. The other fields are the older form: changes to the list."""

    todos: list[TodoInput] | None = None
    current_task: str | None = None
    next_steps: list[str] | None = None
    completed: list[str] | None = None
    blocked: list[BlockedInput] | None = None

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> Any:
        # The model sees only the first form.
        schema = handler.resolve_ref_schema(handler(core_schema))
        schema["properties"] = {"todos": schema["properties"]["todos"]}
        schema["required"] = ["todos"]
        return schema


class ReadTodosInput(BaseModel):
    pass


def written(before: Plan, given: WriteTodosInput) -> Plan:
    """Return the list after a call of `write_todos`. Raises `TodoError`."""
    delta = TodoDelta(
        current_task=given.current_task,
        next_steps=given.next_steps or (),
        completed=dict.fromkeys(given.completed or (), ""),
        blocked={item.id: item.reason for item in given.blocked or ()},
    )
    if given.todos is not None:
        before_changes = Plan([TodoItem(**todo.model_dump()) for todo in given.todos])
    elif delta.current_task is None and not (delta.next_steps or delta.completed or delta.blocked):
        raise TodoError("Give `todos`: the whole list with a status for each item.")
    else:
        before_changes = before
    return checked(changed(before_changes, delta), before)


def write_result(plan: Plan) -> dict[str, Any]:
    """Return the result of `write_todos`."""
    return {
        "todos": as_markdown(plan),
        "ids": [item.id for item in plan.items],
        "counts": {
            status: sum(item.status == status for item in plan.items) for status in STATUSES
        },
    }


def read_result(plan: Plan) -> dict[str, Any]:
    """Return the result of `read_todos`. Times are for programs, not for the model."""
    heading = {"current_task": plan.current_task} if plan.current_task else {}
    names = ("id", "content", "status", "active_form", "note")
    todos = [{name: getattr(item, name) for name in names} for item in plan.items]
    return {**heading, "todos": todos}
