"""The supported versions of the AI SDK, and whole logs in their format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agents.events.projections.ui_dialect import Chunk, Dialect
from agents.events.projections.ui_message import UiMessage
from agents.events.projections.ui_stream import UiStream
from agents.events.projections.ui_v5 import Version5
from agents.events.projections.ui_v6 import Version6
from agents.events.projections.ui_v7 import Version7
from agents.events.read import StoredEvent

DIALECTS: dict[int, Dialect] = {5: Version5(), 6: Version6(), 7: Version7()}
DEFAULT_VERSION = 5


def ui_chunks(run_id: str, events: Iterable[StoredEvent], version: int) -> Iterator[Chunk]:
    """Yield the chunks of a run's events, as one response."""
    stream = UiStream(run_id, DIALECTS[version])
    for event in events:
        yield from stream.feed(event)
    yield from stream.end()


def ui_message(run_id: str, events: Iterable[StoredEvent], version: int) -> UiMessage:
    """Return the assistant message that a client has built after it has read `events`."""
    message = UiMessage(run_id)
    for chunk in ui_chunks(run_id, events, version):
        message.add(chunk)
    message.settle()
    return message
