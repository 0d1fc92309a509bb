"""The to-do list in the state of a Python program's session."""

from __future__ import annotations

from typing import Any

from agents.features.planning.todo_list import Plan, plan_of
from agents.features.planning.todos import give, read_plan
from agents.kernel.session_state import SessionAgent, SessionState


def read(thread_id: str) -> dict[str, Any]:
    return read_plan(thread_id).data()


def check(state: Any, agent: SessionAgent) -> dict[str, Any]:
    return plan_of(state).data()


def write(thread_id: str, state: dict[str, Any]) -> None:
    plan = plan_of(state)
    if plan.data() != read(thread_id):
        give(thread_id, plan)


SESSION_STATES = [SessionState("planning", Plan().data(), read, check, write)]
