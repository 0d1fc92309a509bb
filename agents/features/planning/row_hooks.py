"""The to-do list in the fork of a thread."""

from __future__ import annotations

from agents.events.append import append_events
from agents.features.planning.events import TodosUpdated
from agents.features.planning.queries import todos_after
from agents.features.planning.todos import drafts_from, store_todos
from agents.kernel.row_hooks import RowHooks
from agents.models import Run, Thread


class TodoRows(RowHooks):
    def forked(self, source: Run, turn: int, thread: Thread) -> None:
        """Give a fork the list as it was after the turn."""
        todos = todos_after(source, turn)
        if not todos:
            return
        store_todos(thread.pk, drafts_from(todos))
        # A fork of the fork needs them as well.
        last = Run.objects.get(thread=thread, number=source.number)
        append_events(last.pk, [TodosUpdated(todos=todos)])


ROW_HOOKS = [TodoRows]
