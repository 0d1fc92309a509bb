"""The to-do list in the fork of a thread."""

from __future__ import annotations

from agents.features.planning.todo_list import Plan, TodoItem
from agents.features.planning.todos import give, list_after
from agents.kernel.row_hooks import RowHooks
from agents.models import Run, Thread


class TodoRows(RowHooks):
    def forked(self, source: Run, turn: int, thread: Thread) -> None:
        """Give a fork the list as it was after the turn."""
        found = list_after(source, turn)
        if found["todos"] or found["current_task"]:
            items = [TodoItem(**item) for item in found["todos"]]
            give(thread.pk, Plan(items, found["current_task"]))


ROW_HOOKS = [TodoRows]
