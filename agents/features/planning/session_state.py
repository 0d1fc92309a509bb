"""The to-do list in the state of a Python program's session."""

from __future__ import annotations

from typing import Any

from agents.events.append import append_events
from agents.features.planning.events import TodosUpdated
from agents.features.planning.todo_list import Plan, plan_of
from agents.features.planning.todos import read_plan, store_plan
from agents.kernel.session_state import SessionAgent, SessionState
from agents.models import Run


def read(thread_id: str) -> dict[str, Any]:
    return read_plan(thread_id).data()


def check(state: Any, agent: SessionAgent) -> dict[str, Any]:
    return plan_of(state).data()


def write(thread_id: str, state: dict[str, Any]) -> None:
    plan = plan_of(state)
    if plan.data() != read(thread_id):
        give(thread_id, plan)


def give(thread_id: str, plan: Plan) -> None:
    """Replace the list of a thread, outside of its runs. Pages read the events."""
    last = Run.objects.filter(thread=thread_id).order_by("-number").values_list("pk", flat=True)
    append_events(last[0], [TodosUpdated(call_id=None, **plan.data())])
    store_plan(thread_id, plan)


SESSION_STATES = [SessionState("planning", Plan().data(), read, check, write)]
