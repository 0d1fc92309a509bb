"""Errors of an agent in a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sandbox.errors import AgentError, SetupError

__all__ = [
    "AgentError",
    "RunCancelled",
    "RunFailed",
    "RunInterrupted",
    "SetupError",
    "UnknownName",
]


class UnknownName(SetupError, ValueError):
    """There is no agent type, task or session of this name."""


class RunFailed(AgentError):
    """The run ended without an answer. `code` is that of docs/api.md, such as `limit_turns`."""

    def __init__(self, message: str, *, code: str, session_id: str) -> None:
        super().__init__(f"{message} [{code}]")
        self.code = code
        self.session_id = session_id


class RunCancelled(AgentError):
    """A person or a program has cancelled the run."""

    def __init__(self, message: str, *, session_id: str) -> None:
        super().__init__(message)
        self.session_id = session_id


class RunInterrupted(AgentError):
    """The run waits for a person, and is stored. `interrupts` are the events of the requests.

    Continue with `agent.resume(session_id)` or `agent.reject(session_id)`, here or in another
    process.
    """

    def __init__(self, session_id: str, interrupts: Sequence[Any]) -> None:
        names = ", ".join(str(event.metadata.get("tool_name")) for event in interrupts)
        super().__init__(
            f"The run waits for a person to decide about {names or 'something'}: go on with "
            f"agent.resume({session_id!r}) or agent.reject({session_id!r})."
        )
        self.session_id = session_id
        self.interrupts = list(interrupts)
