"""Families of runs, made by hand: a parent that has delegated, and children in any state."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User

from agents.engine.calls.delegation import wait_for_children
from agents.engine.storage.finish import fail_run
from agents.engine.storage.journal import Waiting, Writer
from agents.features.subagents.options import SubagentOptions
from agents.features.subagents.types import GENERAL_TYPE, child_spec
from agents.kernel.park import park
from agents.models import Run, ToolCall
from agents.services.runs.delegation import ChildOrder, start_children
from agents.services.runs.wake import lock_run
from agents.spec import AgentSpec
from tests.agents.engine.by_hand import a_call, claimed, committed, reply_with
from tests.support.runs import make_agent, make_user, start_run

AT_ONCE = 2


def new_parent() -> tuple[User, Run]:
    """Create a queued run of ada's. Two subagents may run at the same time, over two levels."""
    user = User.objects.filter(username="ada").first()
    if user is None:
        user = make_user()
        make_agent(
            user,
            interrupt_on={"write_file": True},
            max_concurrent_subagents=AT_ONCE,
            subagent_depth=2,
        )
    return user, start_run(user)


def claimed_with_calls(run: Run, count: int = 1) -> Writer:
    """Claim the run and store a reply with calls that have started."""
    writer = claimed(run)
    calls = [a_call(place, status="started", effect="read") for place in range(count)]
    committed(reply_with, writer, calls)
    return writer


def spawn(writer: Writer, count: int, position: int = 0) -> list[Run]:
    """Start children for a call of the last turn. Call it in a transaction."""
    parent = lock_run(writer.run_id)
    spec = AgentSpec.model_validate(parent.spec)
    child = child_spec(spec, GENERAL_TYPE).model_dump(mode="json")
    orders = [ChildOrder(index, child, f"Task {index}") for index in range(count)]
    row = ToolCall.objects.filter(run=parent, position=position).latest("turn")
    at_once = spec.option(SubagentOptions).max_concurrent_subagents
    return start_children(parent, row, orders, at_once=at_once)


def park_for(writer: Writer, children: Sequence[Run], until: float | None = None) -> bool:
    """Park until the children have ended, or `until`. Call it in a transaction."""
    waits = [Waiting([child.pk for child in children], until)]
    return park(writer, wait_for_children(waits), 1, fail_run)
