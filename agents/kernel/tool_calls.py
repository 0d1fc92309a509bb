"""Tool calls in a worker's memory, and their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agents.events.append import EventDraft


@dataclass(slots=True)
class Call:
    """A tool call in a worker's memory, with the fields of its row but no derived values."""

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

    @property
    def place(self) -> tuple[int, int]:
        """Return (turn, position in the turn), which identifies the call in its run."""
        return self.turn, self.position


@dataclass(slots=True)
class ToolResult:
    """The result of a tool for the model.

    `content` is text, a dictionary or list that can be sent as JSON text, or, with `blocks`, a list
    of content blocks. `events` and `commit` take effect in the transaction that stores the result:
    rows written by `commit` exist exactly once, even after a crash.
    """

    content: Any
    is_error: bool = False
    code: str = ""
    blocks: bool = False
    events: list[EventDraft] = field(default_factory=list)
    commit: Callable[[], None] | None = None
