"""What a custom tool may know of the call that it serves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Passed to a function that has a parameter annotated with this class.

    `user` is who asked, a row of the project's user model: a tool over your own data should do
    nothing that this person may not. `session_id` is the caller's name of the thread, None where it
    has none; `agent` is a slug. `progress` shows watchers more output of a call that goes on, from
    any thread.
    """

    user: Any
    run_id: str
    thread_id: str
    session_id: str | None
    agent: str
    call_id: str
    progress: Callable[[str], None] = field(repr=False, default=lambda text: None)
