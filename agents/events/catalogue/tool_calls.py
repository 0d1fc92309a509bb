"""Tool calls: from the model's request to the result.

A call starts with `tool.called` and has one end: `tool.completed`, `tool.failed` or `tool.denied`.
A call that cannot be made has only `tool.rejected`. The event that ends a run also ends its open
calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from agents.events.event import OMITTED, Event, Omitted, Piece


@dataclass(frozen=True, kw_only=True)
class ToolInputStarted(Event):
    """The model starts to write the input of a call."""

    type: ClassVar[str] = "tool.input.started"
    persistent: ClassVar[bool] = False

    call_id: str
    """The id of the call, from the provider."""
    tool: str
    """The name of the tool as the model writes it."""


@dataclass(frozen=True, kw_only=True)
class ToolInputDelta(Piece):
    """The model writes more of the input of a call."""

    type: ClassVar[str] = "tool.input.delta"
    part: ClassVar[str] = "call_id"

    call_id: str
    """The call."""
    text: str
    """The JSON text of the input after the pieces before it."""


@dataclass(frozen=True, kw_only=True)
class ToolCalled(Event):
    """A call is stored with the reply that it belongs to. It has not started."""

    type: ClassVar[str] = "tool.called"

    call_id: str
    """The id of the call, from the provider."""
    tool: str
    """The name of the tool."""
    input: Any
    """The input, normally an object. If it has more than 4,096 bytes as JSON, long texts are cut
    and long lists end after 50 items."""


@dataclass(frozen=True, kw_only=True)
class ToolRejected(Event):
    """The model asked for a call that cannot be made: no such tool, or an invalid input.

    This is the only event of the call.
    """

    type: ClassVar[str] = "tool.rejected"

    call_id: str
    """The id of the call, from the provider."""
    tool: str
    """The name of the tool."""
    input: Any
    """The input, cut as in `tool.called`."""
    code: str
    """`unknown_tool` or `invalid_input`."""
    message: str
    """The error message for the model."""


@dataclass(frozen=True, kw_only=True)
class ToolStarted(Event):
    """The call starts. This is stored before the tool can change anything."""

    type: ClassVar[str] = "tool.started"

    call_id: str
    """The call."""
    attempt: int
    """The number of the attempt, from 1."""
    grant_id: str | Omitted = OMITTED
    """The id of the grant that allowed the call without a question. Missing if none did."""


@dataclass(frozen=True, kw_only=True)
class ToolProgress(Piece):
    """A running tool has more output. It comes before the event that ends the call."""

    type: ClassVar[str] = "tool.progress"
    part: ClassVar[str] = "call_id"

    call_id: str
    """The call."""
    text: str
    """The output after the pieces before it."""


@dataclass(frozen=True, kw_only=True)
class ToolCompleted(Event):
    """The call succeeded, or a person gave its result. The result is stored."""

    type: ClassVar[str] = "tool.completed"

    call_id: str
    """The call."""
    output: str
    """The result as text."""


@dataclass(frozen=True, kw_only=True)
class ToolFailed(Event):
    """The call failed, or it was interrupted. The result is stored."""

    type: ClassVar[str] = "tool.failed"

    call_id: str
    """The call."""
    message: str
    """The error message for the model."""
    code: str
    """The error code, as `tool_error`, `timeout`, `not_found` or `interrupted`."""


@dataclass(frozen=True, kw_only=True)
class ToolDenied(Event):
    """The call is not made: a policy, a middleware or a person refused it, or a request expired.

    If a middleware refuses to repeat a call, an earlier attempt was made.
    """

    type: ClassVar[str] = "tool.denied"

    call_id: str
    """The call."""
    reason: str
    """Why not, or an empty text."""
    by: str | Omitted = OMITTED
    """The source of the policy's decision, or the name of what refused it. Missing if a person
    rejected the call or the request expired."""


EVENTS = [
    ToolInputStarted,
    ToolInputDelta,
    ToolCalled,
    ToolRejected,
    ToolStarted,
    ToolProgress,
    ToolCompleted,
    ToolFailed,
    ToolDenied,
]
