"""Steps and messages: model calls, the text and reasoning of their replies, and joined messages.

A step is one model call. Parts of its reply come as `….started`, `….delta` and `….completed`. The
last of these has the whole text, so a client that reads only complete parts may ignore the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from agents.events.catalogue.runs import Usage
from agents.events.event import OMITTED, Event, Omitted, Piece


@dataclass(frozen=True, kw_only=True)
class StepStarted(Event):
    """A model call is about to be made."""

    type: ClassVar[str] = "step.started"
    persistent: ClassVar[bool] = False

    step: int
    """The number of the model call in the run, from 1."""


@dataclass(frozen=True, kw_only=True)
class StepReset(Event):
    """The model call is made again. Discard what came since the last `step.started`."""

    type: ClassVar[str] = "step.reset"
    persistent: ClassVar[bool] = False

    step: int
    """The number of the model call in the run."""
    reason: str
    """The reason, for people."""
    code: str | Omitted = OMITTED
    """The code of the provider's error. Missing if the call did not fail."""
    attempt: int | Omitted = OMITTED
    """How often the call was made, if the same model is called again."""
    retry_in: float | Omitted = OMITTED
    """Seconds until it is made again, if the same model is called again."""


@dataclass(frozen=True, kw_only=True)
class StepCompleted(Event):
    """The model's reply is stored, together with its tool calls."""

    type: ClassVar[str] = "step.completed"

    step: int
    """The number of the model call in the run."""
    finish_reason: str
    """Why the model stopped, as `end_turn`, `tool_use` or `max_tokens`."""
    usage: Usage
    """Tokens of this model call."""


@dataclass(frozen=True, kw_only=True)
class TextStarted(Event):
    """The model starts a part of its answer."""

    type: ClassVar[str] = "text.started"
    persistent: ClassVar[bool] = False

    part_id: str
    """The part, unique in the run: the step and the position in the reply, as `2.0`."""


@dataclass(frozen=True, kw_only=True)
class TextDelta(Piece):
    """The model writes more of a part of its answer."""

    type: ClassVar[str] = "text.delta"
    part: ClassVar[str] = "part_id"

    part_id: str
    """The part that `text` belongs to."""
    text: str
    """The text after the pieces before it."""


@dataclass(frozen=True, kw_only=True)
class TextCompleted(Event):
    """A part of the answer is stored with the reply that it belongs to."""

    type: ClassVar[str] = "text.completed"

    part_id: str
    """The part."""
    text: str
    """The whole text of the part. It differs from the pieces if a middleware replaced it."""


@dataclass(frozen=True, kw_only=True)
class ReasoningStarted(Event):
    """The model starts a part of its reasoning."""

    type: ClassVar[str] = "reasoning.started"
    persistent: ClassVar[bool] = False

    part_id: str
    """The part, unique in the run: the step and the position in the reply, as `2.0`."""


@dataclass(frozen=True, kw_only=True)
class ReasoningDelta(Piece):
    """The model writes more of a part of its reasoning."""

    type: ClassVar[str] = "reasoning.delta"
    part: ClassVar[str] = "part_id"

    part_id: str
    """The part that `text` belongs to."""
    text: str
    """The text after the pieces before it."""


@dataclass(frozen=True, kw_only=True)
class ReasoningCompleted(Event):
    """A part of the reasoning is stored with the reply that it belongs to."""

    type: ClassVar[str] = "reasoning.completed"

    part_id: str
    """The part."""
    text: str
    """The whole text of the part. Empty if the provider keeps the reasoning to itself."""


@dataclass(frozen=True, kw_only=True)
class MessageJoined(Event):
    """A message that waited has reached the run. The next model call contains it."""

    type: ClassVar[str] = "message.joined"

    step: int
    """The last model call without the message."""
    waiting_run_id: str
    """The run that the message would have started. It has ended as cancelled."""
    by: str
    """The name of the user who sent the message now."""
    text: str
    """The message."""
    files: list[str]
    """Paths of the files that were attached to it."""


EVENTS = [
    StepStarted,
    StepReset,
    StepCompleted,
    TextStarted,
    TextDelta,
    TextCompleted,
    ReasoningStarted,
    ReasoningDelta,
    ReasoningCompleted,
    MessageJoined,
]
