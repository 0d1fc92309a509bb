"""Streamed text on its way to watchers: gathered for a moment and written for all runs at once.

Invariant 8: a run's deltas are written before its next change of state, or not at all: the event
that completes a part carries the whole text.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from agents.engine.errors import FenceLost
from agents.engine.storage.database import Database
from agents.engine.storage.journal import write_events
from agents.engine.storage.journal_rows import Writer
from agents.events.append import EventDraft
from agents.events.catalogue.messages import StepReset, StepStarted
from agents.events.event import Piece

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 0.05


@dataclass(slots=True)
class _Pieces:
    """Pieces of one part that are not written yet; they become one event."""

    kind: type[Piece]
    part: str
    texts: list[str]

    def event(self) -> EventDraft:
        return self.kind.of(self.part, "".join(self.texts))


class DeltaStream:
    """The unwritten events of one run's model call or running tools."""

    def __init__(self, flusher: DeltaFlusher, writer: Writer) -> None:
        self._flusher = flusher
        self.writer = writer
        self._drafts: list[EventDraft | _Pieces] = []

    def add(self, kind: type[Piece], part: str, text: str) -> None:
        """More text for `part`, the part of a reply or the call that `kind` is about."""
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
        """Forget unwritten pieces of the model's reply; what is said about steps stays."""
        self._drafts = [each for each in self._drafts if isinstance(each, StepStarted | StepReset)]

    def take(self) -> list[EventDraft]:
        """What is not written yet; the caller writes it, or leaves it out for good."""
        drafts, self._drafts = self._drafts, []
        return [each.event() if isinstance(each, _Pieces) else each for each in drafts]


class DeltaFlusher:
    """Writes the deltas of all runs of the process every `FLUSH_SECONDS`."""

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
                # Asked for in this moment, so that no driver can ask for a later change of its
                # state before it.
                written = self._database.submit(write_events, stream.writer, drafts)
                written.add_done_callback(partial(self._written, stream.writer))
        self._waiting.clear()

    def _written(self, writer: Writer, result: asyncio.Future[None]) -> None:
        error = result.exception()
        if isinstance(error, FenceLost):
            self._on_lost(writer)
        elif error is not None:
            # Deltas are a convenience: the completed part carries the whole text.
            logger.warning(
                "streamed text was not written: %s", error, extra={"run_id": writer.run_id}
            )
