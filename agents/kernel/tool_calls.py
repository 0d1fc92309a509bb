"""Calls of tools as their driver holds them, and their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agents.events.append import EventDraft


@dataclass(slots=True)
class Call:
    """A tool call as its driver holds it; the row's fields, and nothing that is derived."""

    turn: int
    position: int
    call_id: str
    tool: str
    input: str
    effect: str
    status: str
    attempt: int = 0
    is_error: bool = False
    code: str = ""
    result: str = ""
    edited_input: str = ""


@dataclass(slots=True)
class ToolResult:
    """What a tool gives back to the model.

    `content` is text, a JSON-able dictionary or list (sent as JSON text), or, with `blocks`, a
    list of content blocks. `events` and `commit` take effect in the transaction that stores the
    result: rows written by `commit` exist exactly once, whatever crashes.
    """

    content: Any
    is_error: bool = False
    code: str = ""
    blocks: bool = False
    events: list[EventDraft] = field(default_factory=list)
    commit: Callable[[], None] | None = None
