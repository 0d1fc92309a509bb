"""Delegated runs, created by the service that the engine calls."""

from __future__ import annotations

from agents.events.append import dump
from agents.features.subagents.types import child_spec
from agents.models import Effect, Run, ToolCall
from agents.services.runs.delegation import ChildOrder, start_children
from agents.services.runs.wake import lock_run
from agents.spec import AgentSpec, SubagentSpec
from agents.states import ToolCallStatus


def delegate(
    parent: Run, *tasks: str, name: str = "explore", model: str = "echo", at_once: int = 5
) -> list[Run]:
    """Create the children of one call of `parallel_tasks`. Needs a transaction."""
    parent = lock_run(parent.pk)
    spec = AgentSpec.model_validate(parent.spec)
    child = child_spec(spec, SubagentSpec(name=name, description="Looks.", model=model))
    place = ToolCall.objects.filter(run=parent).count()
    call = ToolCall.objects.create(
        run=parent,
        turn=1,
        position=place,
        call_id=f"toolu_d{place}",
        tool="parallel_tasks",
        input=dump({"tasks": list(tasks)}),
        effect=Effect.READ,
        status=ToolCallStatus.STARTED,
    )
    dumped = child.model_dump(mode="json")
    orders = [ChildOrder(index, dumped, task) for index, task in enumerate(tasks)]
    return start_children(parent, call, orders, at_once=at_once)
