"""The context of a call for a custom tool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The argument of a function that has a parameter annotated with this class.

    `user` is the person of the run, a row of the project's user model: a tool over your own data
    should check this person's permissions. `session_id` is the caller's name of the thread, or
    None; `agent` is a slug. `progress` shows more output of a running call to watchers, from any
    thread.
    """

    user: Any
    run_id: str
    thread_id: str
    session_id: str | None
    agent: str
    call_id: str
    progress: Callable[[str], None] = field(repr=False, default=lambda text: None)
