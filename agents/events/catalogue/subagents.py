"""Subagents: runs that a tool call of this run delegates to.

Each subagent is a run with a separate log. With `tree=all` its events come between the two events
below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from agents.events.event import Event


@dataclass(frozen=True, kw_only=True)
class SubagentStarted(Event):
    """The run of a subagent is created. It may have to wait for others."""

    type: ClassVar[str] = "subagent.started"

    child_run_id: str
    """The id of the subagent's run."""
    name: str
    """The name of the subagent, as `explore`."""
    call_id: str
    """The call that delegates to it."""
    status: str
    """The status of its run: `queued`, or `pending` if too many subagents are at work."""
    task: str
    """The start of its task: at most 80 characters in one line."""


@dataclass(frozen=True, kw_only=True)
class SubagentFinished(Event):
    """The run of a subagent has ended, or its parent ends and cancels it."""

    type: ClassVar[str] = "subagent.finished"

    child_run_id: str
    """The id of the subagent's run."""
    name: str
    """The name of the subagent."""
    call_id: str
    """The call that delegated to it, or an empty text."""
    status: str
    """The status of its run: `completed`, `failed` or `cancelled`."""


EVENTS = [SubagentStarted, SubagentFinished]
