"""A to-do list as a component: alone in memory, in an agent the agent's own list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from agents.custom.tool_spec import ToolSpec
from agents.sdk.built_in import BuiltInMiddleware
from agents.sdk.config import DeepAgentConfig
from agents.sdk.errors import SetupError

_MARKS = {"pending": "○", "in_progress": "▶", "done": "✓", "completed": "✓", "blocked": "✗"}
_DONE = frozenset({"done", "completed"})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass
class TodoItem:
    """`status` is pending, in_progress, done or blocked. Times are ISO 8601 in UTC.

    >>> TodoItem("todo_0", "Read the report").to_dict()["status"]
    'pending'
    """

    id: str
    task: str
    status: str = "pending"
    created_at: str = field(default_factory=_now)
    completed_at: str | None = None
    notes: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class TodoList:
    """The tasks, in their order.

    >>> todos = TodoList()
    >>> first = todos.add("Read the report")
    >>> todos.complete(first.id)
    True
    >>> len(todos.get_completed())
    1
    """

    items: list[TodoItem] = field(default_factory=list)
    current_task: str = ""

    def add(self, task: str) -> TodoItem:
        item = TodoItem(f"todo_{len(self.items)}", task)
        self.items.append(item)
        return item

    def complete(self, todo_id: str, notes: str | None = None) -> bool:
        """Complete an item. Return whether it exists."""
        item = self._find(todo_id)
        if item is None:
            return False
        item.status, item.completed_at = "done", _now()
        item.notes = notes or item.notes
        return True

    def block(self, todo_id: str, reason: str) -> bool:
        """Block an item for a reason. Return whether it exists."""
        item = self._find(todo_id)
        if item is None:
            return False
        item.status, item.notes = "blocked", reason
        return True

    def get_pending(self) -> list[TodoItem]:
        return [item for item in self.items if item.status == "pending"]

    def get_completed(self) -> list[TodoItem]:
        return [item for item in self.items if item.status in _DONE]

    def to_markdown(self) -> str:
        lines = ["## Current Task", self.current_task, "", "## Todo List"]
        for item in self.items:
            box = "x" if item.status in _DONE else " "
            lines.append(f"- [{box}] {_MARKS.get(item.status, '○')} {item.task}")
            if item.notes:
                lines.append(f"  - Note: {item.notes}")
        return "\n".join(lines)

    def _find(self, todo_id: str) -> TodoItem | None:
        return next((item for item in self.items if item.id == todo_id), None)


class PlanningMiddleware(BuiltInMiddleware):
    """A list with the tools to write and read it.

    >>> planning = PlanningMiddleware()
    >>> planning.write_todos(todos=[{"content": "Read", "status": "pending"}])["pending_count"]
    1
    >>> agent = create_deep_agent(middleware=[PlanningMiddleware()])
    """

    name = "planning"
    leave_out = "planning=False"

    def __init__(self) -> None:
        self.todo_list = TodoList()

    def configure(self, config: DeepAgentConfig) -> DeepAgentConfig:
        """Use the agent's own list, which each session has, with these tools."""
        if not config.planning:
            raise SetupError("planning=False contradicts the PlanningMiddleware: leave one out.")
        return config

    def get_tools(self) -> Sequence[ToolSpec]:
        return (
            ToolSpec.from_function(self.write_todos, effect="read"),
            ToolSpec.from_function(self.read_todos, effect="read"),
        )

    def write_todos(
        self,
        current_task: str = "",
        next_steps: list[str] | None = None,
        completed: list[str] | None = None,
        blocked: list[dict[str, str]] | None = None,
        todos: list[dict[str, str]] | None = None,
    ) -> dict[str, Any]:
        """Write the plan for work of several steps, and what has become of it.

        Args:
            current_task: What you are working on now
            next_steps: Tasks to add
            completed: Ids of what is done
            blocked: What cannot go on, as {"id", "reason"}
            todos: Instead, the whole list, as {"content", "status"}
        """
        listed = self.todo_list
        if todos is not None:
            listed.items = []
            for given in todos:
                item = listed.add(given["content"])
                status = given.get("status", "pending")
                item.status = "done" if status in _DONE else status
                item.notes = given.get("note") or None
        if current_task:
            listed.current_task = current_task
        for todo_id in completed or ():
            listed.complete(todo_id)
        for stuck in blocked or ():
            listed.block(stuck["id"], stuck.get("reason", ""))
        added = [listed.add(step).to_dict() for step in next_steps or ()]
        return {
            "current_task": listed.current_task,
            "new_items": added,
            "pending_count": len(listed.get_pending()),
            "completed_count": len(listed.get_completed()),
            "todo_list": listed.to_markdown(),
        }

    def read_todos(self) -> list[dict[str, Any]]:
        """Show the plan."""
        return [item.to_dict() for item in self.todo_list.items]

    def get_system_prompt_segment(self) -> str:
        return (
            "## Planning\nFor work of several steps, first write the steps with `write_todos`, "
            "tick each off when it is done, and change the plan when you learn more."
        )

    def get_state(self) -> dict[str, Any]:
        return {"current_task": self.todo_list.current_task, "items": self.read_todos()}

    def load_state(self, state: dict[str, Any]) -> None:
        items = [TodoItem(**item) for item in state.get("items", ())]
        self.todo_list = TodoList(items, state.get("current_task", ""))
