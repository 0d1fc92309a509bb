"""The events of compaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from agents.events.event import Event


@dataclass(frozen=True, kw_only=True)
class ContextCompacted(Event):
    """The conversation was made shorter. The stored messages stay as they are."""

    type: ClassVar[str] = "context.compacted"

    before: int
    """Tokens of the conversation before, estimated."""
    after: int
    """Tokens of the conversation after, estimated."""
    summary_ref: int | None
    """The number of the compaction in the thread. Null if nothing was summarised."""
    by: str
    """`model` or `journal`: the author of the summary. `clipping`: only long texts were cut."""
    clipped: int
    """How many long texts were cut."""


EVENTS = [ContextCompacted]
