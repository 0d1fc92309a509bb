"""Guardrails: checks, lifecycle hooks, repetition and retries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from agents.events.event import OMITTED, Event, Omitted


@dataclass(frozen=True, kw_only=True)
class GuardBlocked(Event):
    """A guardrail blocked something, or failed to check it."""

    type: ClassVar[str] = "guard.blocked"

    stage: str
    """The checked item: `input` (the message), `thinking`, `output` (text of the model),
    `tool_call` or `tool_result`."""
    guardrail: str
    """The name of the guardrail."""
    call_id: str | Omitted = OMITTED
    """The call, with `tool_call` and `tool_result`."""
    reason: str
    """Why, for the model and for people."""


@dataclass(frozen=True, kw_only=True)
class GuardReplaced(Event):
    """A guardrail replaced a text."""

    type: ClassVar[str] = "guard.replaced"

    stage: str
    """The checked item: `input` (the message), `thinking`, `output` (text of the model) or
    `tool_result`."""
    guardrail: str
    """The names of the guardrails that replaced it, with commas between them."""
    call_id: str | Omitted = OMITTED
    """The call, with `tool_result`."""


@dataclass(frozen=True, kw_only=True)
class GuardStuck(Event):
    """The run repeats itself. The model receives a note, or the run ends."""

    type: ClassVar[str] = "guard.stuck"

    kind: str
    """`same_call`, `same_error`, `ping_pong` (two steps in turn) or `empty_reply`."""
    count: int
    """How often it happened in a row."""
    action: str
    """`note`: the model receives a note. `end`: the run ends."""


@dataclass(frozen=True, kw_only=True)
class HookFailed(Event):
    """A lifecycle hook raised an exception or took too long. The run continues."""

    type: ClassVar[str] = "hook.failed"

    hook: str
    """The name of the hook."""
    point: str
    """Where it was called, as `before_tool`."""
    message: str
    """The error, without the text of the exception, which is in the worker's log."""


@dataclass(frozen=True, kw_only=True)
class ToolRetried(Event):
    """A call that only reads failed with a temporary error and will be made again."""

    type: ClassVar[str] = "tool.retried"

    call_id: str
    """The call."""
    attempt: int
    """The number of the attempt that failed, from 1."""
    code: str
    """The error code: `timeout` or `connection`."""
    message: str
    """The result of that attempt."""
    retry_in: float
    """Seconds until the call is made again."""


EVENTS = [GuardBlocked, GuardReplaced, GuardStuck, HookFailed, ToolRetried]
