"""Convert a stream to the form of a `StreamMode`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from agents.events.catalogue.messages import StepCompleted
from agents.events.catalogue.runs import RUN_ENDS, RunSuspended
from agents.events.projections.ui import DEFAULT_VERSION, DIALECTS
from agents.events.projections.ui_stream import UiStream
from agents.events.stored import StoredEvent
from agents.sdk.environment.process import Engine
from agents.sdk.rows.sessions import Place
from agents.sdk.rows.state import values_of
from agents.sdk.streaming.stream import LogEvent, StreamEvent, StreamMode
from agents.selectors.chats import begin_after

_PAUSES = frozenset({RunSuspended.type, *RUN_ENDS})


class Teller:
    """Converts the events of one run to one mode. A row can give any number of items."""

    def __init__(self, engine: Engine, mode: StreamMode, place: Place, session_id: str) -> None:
        self._engine = engine
        self._mode = mode
        self._run_id = place.run_id
        self._session_id = session_id
        self._text: list[str] = []
        open_calls = {
            call: name for (run, call), name in place.tools.items() if run == self._run_id
        }
        version = mode.ai_sdk_version
        self._has_parts = version is not None
        self._parts = UiStream(place.run_id, DIALECTS[version or DEFAULT_VERSION], open_calls)
        self._seen = place.seen.get(place.run_id, 0)

    async def begin(self) -> list[Any]:
        """Return the items before the first row: the start of a message that continues."""
        if not self._has_parts or not self._seen:
            return []
        return await self._engine.call(begin_after, self._parts, self._seen)

    async def tell(self, event: LogEvent, read: list[StreamEvent]) -> AsyncIterator[Any]:
        """Yield the items for the row `event`. `read` has the stream events of the row."""
        if self._mode is StreamMode.DEBUG:
            yield event
        elif self._has_parts:
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
        """Return the items after the last row, when a person must answer or the run has ended."""
        if not self._has_parts:
            return []
        return self._parts.finish_response() if self._parts.awaits_answer else self._parts.end()

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
