"""To-dos in the streams of the AI SDK and of Python programs."""

from __future__ import annotations

from typing import Any

from agents.features.planning.events import TodosUpdated


def todo_chunks(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a part `data-todos` for the AI SDK."""
    return [{"type": "data-todos", "id": "todos", "data": data}]


UI_CHUNKS = [(TodosUpdated.type, todo_chunks)]
STREAM_EVENTS = [(TodosUpdated.type, "todos", "", ("current_task", "todos"))]
