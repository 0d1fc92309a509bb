"""The forms of a stream, by `StreamMode`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from agents.events.catalogue.messages import StepCompleted
from agents.events.catalogue.runs import RUN_ENDS, RunSuspended
from agents.events.projections.ui import Version5
from agents.events.projections.ui_stream import UiStream
from agents.events.read import StoredEvent
from agents.sdk.environment.process import Engine
from agents.sdk.rows.sessions import Place
from agents.sdk.rows.state import values_of
from agents.sdk.streaming.stream import LogEvent, StreamEvent, StreamMode

_PAUSES = frozenset({RunSuspended.type, *RUN_ENDS})


class Teller:
    """Converts one run's events to one mode. `tell` can yield any number of items for a row."""

    def __init__(self, engine: Engine, mode: StreamMode, place: Place, session_id: str) -> None:
        self._engine = engine
        self._mode = mode
        self._run_id = place.run_id
        self._session_id = session_id
        self._text: list[str] = []
        open_calls = {
            call: name for (run, call), name in place.tools.items() if run == self._run_id
        }
        self._parts = UiStream(place.run_id, Version5(), open_calls)

    async def tell(self, event: LogEvent, read: list[StreamEvent]) -> AsyncIterator[Any]:
        """Yield the items for `event`; `read` are the reader's stream events for it."""
        if self._mode is StreamMode.DEBUG:
            yield event
        elif self._mode is StreamMode.UI_PARTS:
            data = json.dumps(event["data"])
            row = StoredEvent(event["run_id"], event["seq"], event["type"], event["ts"], data)
            for item in read:
                if item.type == "artifact":
                    yield {"type": "data-artifact", "data": item.metadata}
            for part in self._parts.feed(row):
                yield part
        elif self._mode is StreamMode.VALUES:
            async for values in self._values(event):
                yield values
        else:
            make = {
                StreamMode.EVENTS: _itself,
                StreamMode.MESSAGES: _message,
                StreamMode.UPDATES: self._update,
            }[self._mode]
            for item in read:
                if (made := make(item)) is not None:
                    yield made

    def finish(self) -> list[Any]:
        """Return the items after the last row."""
        return self._parts.end() if self._mode is StreamMode.UI_PARTS else []

    async def _values(self, event: LogEvent) -> AsyncIterator[dict[str, Any]]:
        own = event["run_id"] == self._run_id
        if event["type"] in _PAUSES or (own and event["type"] == StepCompleted.type):
            yield await self._engine.call(values_of, self._run_id, self._session_id)

    def _update(self, item: StreamEvent) -> dict[str, Any] | None:
        if item.type == "token":
            self._text.append(item.content)
            return None
        if item.type == "reset":
            self._text.clear()
        if item.type == "step":
            text, self._text = "".join(self._text), []
            return {item.node_id: {"text": text, **item.metadata}}
        place = _UPDATES.get(item.type)
        if place is None:
            return None
        content = {"content": item.content} if item.content else {}
        return {place: {**content, **item.metadata}}


_UPDATES = {
    "tool_call": "agent",
    "tool_result": "tools",
    "todos": "planning",
    "artifact": "artifact",
    "interrupt": "interrupt",
    "subagent_start": "subagents",
    "subagent_end": "subagents",
    "end": "end",
    "error": "error",
    "cancelled": "cancelled",
}


def _itself(item: StreamEvent) -> StreamEvent:
    return item


def _message(item: StreamEvent) -> tuple[str, dict[str, Any]] | None:
    return (
        (item.content, {**item.metadata, "node_id": item.node_id}) if item.type == "token" else None
    )
