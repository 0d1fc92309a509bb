"""A run with its subagents, as the terminal drives and shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agents.events.catalogue.subagents import SubagentFinished, SubagentStarted
from agents.events.read import read_events
from agents.sdk.rows.family import Family

__all__ = ["Family", "replay"]

PAGE = 500


def replay(run_id: str) -> Iterator[dict[str, Any]]:
    """Yield the stored events of a run and its subagents: those of each subagent before its end."""
    told: set[str] = set()
    begun: list[str] = []
    after = 0
    while events := read_events(run_id, after=after, limit=PAGE):
        for event in events:
            child = event["data"].get("child_run_id", "")
            if event["type"] == SubagentFinished.type and child not in told:
                told.add(child)
                yield from replay(child)
            yield {"run_id": run_id, **event}
            if event["type"] == SubagentStarted.type:
                begun.append(child)
        after = events[-1]["seq"]
    for child in begun:
        if child not in told:
            yield from replay(child)
