"""Follow a run on a program's own event loop until it ends or waits for a person."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from agents.events.catalogue.approvals import ApprovalRequested
from agents.events.catalogue.runs import RUN_ENDS, RunSuspended
from agents.events.read import read_events
from agents.events.tree import follow_tree
from agents.sdk.environment.process import Engine
from agents.sdk.rows.state import Family
from agents.sdk.streaming.stream import LogEvent

_STOPS = (RunSuspended.type, *RUN_ENDS)


async def follow(
    engine: Engine, run_id: str, seen: Mapping[str, int], *, waits: bool = True
) -> AsyncGenerator[LogEvent, None]:
    """Yield the events of a run and its subagents after those in `seen`.

    `seen` has the number of the last event by run. The generator ends after the run's last event,
    or when the run needs an action outside this process, or when another caller has decided its
    requests; without `waits`, after the stored events. Close the generator if you leave it early.
    """
    known = dict(seen)
    if not waits or await engine.call(_is_stuck, run_id):
        for event in await engine.call(_rest, run_id, known):
            yield event
        return
    asked = False
    async with aclosing(follow_tree(run_id)) as events:
        async for stored in events:
            if stored.seq <= known.get(stored.run_id, 0):
                continue
            known[stored.run_id] = stored.seq
            yield stored.as_dict()
            if stored.run_id == run_id and stored.type in RUN_ENDS:
                return
            asked = asked or stored.type == ApprovalRequested.type
            if stored.type not in _STOPS:
                continue
            if await engine.call(_is_stuck, run_id):
                break
            if asked:
                return  # the requests were decided already, and that caller follows the run
    # Other runs of the family may have new events, whose requests belong to this pause.
    for event in await engine.call(_rest, run_id, known):
        yield event


def _is_stuck(run_id: str) -> bool:
    return Family(run_id).is_stuck()


def _rest(run_id: str, known: Mapping[str, int]) -> list[dict[str, Any]]:
    found = []
    for member in Family(run_id).members():
        after = known.get(member.pk, 0)
        while events := read_events(member.pk, after=after):
            found += [{"run_id": member.pk, **event} for event in events]
            after = events[-1]["seq"]
    return found
