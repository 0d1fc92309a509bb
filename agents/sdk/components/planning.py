"""A to-do list as a component: in memory, or in an agent the list of its sessions."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any

from agents.custom.tool_spec import ToolSpec
from agents.features.planning import todo_list
from agents.features.planning.todo_list import Plan, TodoDelta, TodoError, TodoItem
from agents.middleware.input_check import fitting_input
from agents.sdk.built_in import BuiltInMiddleware, Sessions
from agents.sdk.config import DeepAgentConfig
from agents.sdk.errors import SetupError

__all__ = ["PlanningMiddleware", "TodoItem", "TodoList"]


class TodoList:
    """A list of tasks in order, with a heading. Raises `SetupError` for invalid values.

    >>> todos = TodoList()
    >>> first = todos.add("Read the report")
    >>> todos.complete(first.id)
    True
    >>> len(todos.get_completed())
    1
    """

    def __init__(self, items: Iterable[TodoItem] = (), current_task: str = "") -> None:
        self.items: Sequence[TodoItem] = list(items)
        self.current_task = current_task
        self.keep(self.plan)

    def add(self, task: str) -> TodoItem:
        """Add a task at the end, and return its item."""
        self._change(TodoDelta(next_steps=[task]))
        return self.items[-1]

    def complete(self, todo_id: str, notes: str | None = None) -> bool:
        """Complete an item. Return whether it exists."""
        if self._has(todo_id):
            self._change(TodoDelta(completed={todo_id: notes or ""}))
            return True
        return False

    def block(self, todo_id: str, reason: str) -> bool:
        """Block an item for a reason. Return whether it exists."""
        if self._has(todo_id):
            self._change(TodoDelta(blocked={todo_id: reason}))
            return True
        return False

    def get_pending(self) -> list[TodoItem]:
        """Return the pending items."""
        return [item for item in self.items if item.status == "pending"]

    def get_completed(self) -> list[TodoItem]:
        """Return the completed items."""
        return [item for item in self.items if item.status == "completed"]

    def to_markdown(self) -> str:
        """Return the list as the Markdown text that the agent reads."""
        return todo_list.as_markdown(self.plan)

    @property
    def plan(self) -> Plan:
        """Return the list in checked form. Raises `SetupError`."""
        try:
            return todo_list.checked(Plan(tuple(self.items), self.current_task))
        except TodoError as error:
            raise SetupError(str(error)) from None

    def keep(self, plan: Plan) -> None:
        """Replace the content with a checked list.

        An item with the same text at the same position stays the same object.
        """
        items = list(plan.items)
        for at, (old, new) in enumerate(zip(self.items, plan.items, strict=False)):
            if old.content == new.content:
                vars(old).update(vars(new))
                items[at] = old
        self.items, self.current_task = items, plan.current_task

    def _change(self, delta: TodoDelta) -> None:
        plan = self.plan
        try:
            self.keep(todo_list.checked(todo_list.changed(plan, delta), plan))
        except TodoError as error:
            raise SetupError(str(error)) from None

    def _has(self, todo_id: str) -> bool:
        return any(item.id == todo_id for item in self.plan.items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TodoList) and self.plan.data() == other.plan.data()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TodoList({list(self.items)!r}, {self.current_task!r})"


class _SessionList(TodoList):
    """A copy of a session's list. Its methods also change the session."""

    def __init__(self, sessions: Sessions, session_id: str) -> None:
        self._sessions, self._session_id = sessions, session_id
        self._is_read = False
        plan = todo_list.plan_of(sessions.part(session_id, "planning"))
        super().__init__(plan.items, plan.current_task)
        self._is_read = True

    def keep(self, plan: Plan) -> None:
        if self._is_read:
            self._sessions.replace_part(self._session_id, "planning", plan.data())
        # Use a tuple, because changes of a list by the program would not change the session.
        self.items, self.current_task = tuple(plan.items), plan.current_task


class PlanningMiddleware(BuiltInMiddleware):
    """A to-do list, and the tools with which agents write and read it.

    In an agent, each new session starts with a copy of the list. After that, `todo_list`,
    `get_state` and the tools show and change the list of the agent's last session.

    >>> planning = PlanningMiddleware()
    >>> planning.write_todos(todos=[{"content": "Read", "status": "pending"}])["counts"]["pending"]
    1
    >>> agent = create_deep_agent(middleware=[PlanningMiddleware()])
    """

    name = "planning"
    leave_out = "planning=False"

    def __init__(self) -> None:
        self._own = TodoList()
        self._last: TodoList | None = None
        """The list of the last session, after its agent was closed."""
        self._sessions: weakref.ref[Sessions] | None = None
        self._session_id = ""

    def configure(self, config: DeepAgentConfig) -> DeepAgentConfig:
        """Return `config` unchanged: each session has its own list.

        Raises `SetupError` if the agent has no planning.
        """
        if not config.planning:
            raise SetupError("planning=False contradicts the PlanningMiddleware: leave one out.")
        return config

    def begins_with(self) -> dict[str, Any]:
        return {"planning": self._own.plan.data()}

    def follow(self, sessions: Sessions, session_id: str) -> None:
        self._sessions, self._session_id = weakref.ref(sessions), session_id

    def leave(self, sessions: Sessions) -> None:
        if self._sessions is not None and self._sessions() is sessions:
            plan = self.todo_list.plan
            self._sessions = None
            self._last = TodoList(plan.items, plan.current_task)

    @property
    def todo_list(self) -> TodoList:
        """Return the list; in an agent that of its last session."""
        sessions = self._sessions() if self._sessions is not None else None
        if sessions is None:
            return self._last or self._own
        return _SessionList(sessions, self._session_id)

    def get_tools(self) -> Sequence[ToolSpec]:
        return (
            ToolSpec(
                todo_list.WRITE,
                todo_list.WRITE_DESCRIPTION,
                self.write_todos,
                todo_list.WriteTodosInput,
                effect="read",
            ),
            ToolSpec(
                todo_list.READ,
                todo_list.READ_DESCRIPTION,
                self.read_todos,
                todo_list.ReadTodosInput,
                effect="read",
            ),
        )

    def write_todos(
        self,
        current_task: str | None = None,
        next_steps: list[str] | None = None,
        completed: list[str] | None = None,
        blocked: list[Any] | None = None,
        todos: list[Any] | None = None,
    ) -> dict[str, Any]:
        """Write the list as the tool of an agent does. A mistake is the field `error`.

        Args:
            current_task: The heading: the current task
            next_steps: Tasks to add
            completed: Ids of completed tasks
            blocked: Blocked tasks, as {"id", "reason"}
            todos: Instead, the whole list, as {"content", "status", "active_form", "note"}
        """
        given = {
            "current_task": current_task,
            "next_steps": next_steps,
            "completed": completed,
            "blocked": blocked,
            "todos": todos,
        }
        listed = self.todo_list
        checked = fitting_input(todo_list.WRITE, todo_list.WriteTodosInput, given)
        if isinstance(checked, str):
            return {"error": checked}
        try:
            plan = todo_list.written(listed.plan, checked)
        except TodoError as error:
            return {"error": str(error)}
        listed.keep(plan)
        return todo_list.write_result(plan)

    def read_todos(self) -> dict[str, Any]:
        """Show the list as the tool of an agent does."""
        return todo_list.read_result(self.todo_list.plan)

    def get_system_prompt_segment(self) -> str:
        return todo_list.PROMPT

    def get_state(self) -> dict[str, Any]:
        """Return the list in the form of the part `planning` in an agent's state."""
        return self.todo_list.plan.data()

    def load_state(self, state: dict[str, Any]) -> None:
        """Replace the list with that of a state. Raises `SetupError`, and then changes nothing."""
        try:
            plan = todo_list.plan_of(state)
        except TodoError as error:
            raise SetupError(f"load_state: {error}") from None
        self.todo_list.keep(plan)
