"""Streamed text (deltas) for clients: collected for a moment, and written for all runs together.

Invariant 8 (docs/contributing/architecture.md): a run's deltas are written before its next change
of state, or not at all. Lost deltas do no harm, because the event that completes a part contains
its whole text.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from agents.engine.errors import FenceLost
from agents.engine.storage.database import Database
from agents.engine.storage.journal import Writer, write_events
from agents.events.append import EventDraft
from agents.events.catalogue.messages import StepReset, StepStarted
from agents.events.event import Piece

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 0.05


@dataclass(slots=True)
class _Pieces:
    """Unwritten text of one part, which becomes one event."""

    kind: type[Piece]
    part: str
    texts: list[str]

    def event(self) -> EventDraft:
        return self.kind.of(self.part, "".join(self.texts))


class DeltaStream:
    """The unwritten events of the model call or the running tools of one run."""

    def __init__(self, flusher: DeltaFlusher, writer: Writer) -> None:
        self._flusher = flusher
        self.writer = writer
        self._drafts: list[EventDraft | _Pieces] = []

    def add(self, kind: type[Piece], part: str, text: str) -> None:
        """Add text to the part `part` (an id) of a reply, or to a call, depending on `kind`."""
        if self._drafts:
            last = self._drafts[-1]
            if type(last) is _Pieces and last.kind is kind and last.part == part:
                last.texts.append(text)
                return
        self._put(_Pieces(kind, part, [text]))

    def put(self, draft: EventDraft) -> None:
        self._put(draft)

    def _put(self, draft: EventDraft | _Pieces) -> None:
        if not self._drafts:
            self._flusher.schedule(self)
        self._drafts.append(draft)

    def drop_parts(self) -> None:
        """Discard unwritten text of the model's reply. Events about steps are kept."""
        self._drafts = [each for each in self._drafts if isinstance(each, StepStarted | StepReset)]

    def take(self) -> list[EventDraft]:
        """Return the unwritten events, and forget them. The caller writes or discards them."""
        drafts, self._drafts = self._drafts, []
        return [each.event() if isinstance(each, _Pieces) else each for each in drafts]


class DeltaFlusher:
    """Writes the unwritten events of all runs of the process every `FLUSH_SECONDS`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        database: Database,
        on_lost: Callable[[Writer], None],
    ) -> None:
        self._loop = loop
        self._database = database
        self._on_lost = on_lost
        self._waiting: set[DeltaStream] = set()
        self._timer: asyncio.TimerHandle | None = None

    def schedule(self, stream: DeltaStream) -> None:
        self._waiting.add(stream)
        if self._timer is None:
            self._timer = self._loop.call_later(FLUSH_SECONDS, self._flush)

    def _flush(self) -> None:
        self._timer = None
        for stream in self._waiting:
            drafts = stream.take()
            if drafts:
                # Submit the write now, before a driver can submit a later change of its state.
                written = self._database.submit(write_events, stream.writer, drafts)
                written.add_done_callback(partial(self._written, stream.writer))
        self._waiting.clear()

    def _written(self, writer: Writer, result: asyncio.Future[None]) -> None:
        error = result.exception()
        if isinstance(error, FenceLost):
            self._on_lost(writer)
        elif error is not None:
            # A lost delta does no harm: the event of the completed part has the whole text.
            logger.warning(
                "streamed text was not written: %s", error, extra={"run_id": writer.run_id}
            )
