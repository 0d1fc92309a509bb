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
    """The run ended without an answer.

    `code` is the reason, for example `limit_turns`. docs/guides/python.md lists the codes.

    >>> look = {"tool_calls": [("ls", {})]}
    >>> agent = create_deep_agent(scripted_model([look, look]), sandbox=False, max_steps=1)
    >>> try:
    ...     asyncio.run(agent.run("Look around"))
    ... except RunFailed as error:
    ...     print(error.code)
    limit_turns
    """

    def __init__(self, message: str, *, code: str, session_id: str) -> None:
        super().__init__(f"{message} [{code}]")
        self.code = code
        self.session_id = session_id


class RunCancelled(AgentError):
    """A person or a program has cancelled the run.

    >>> async def answer(agent, message):
    ...     try:
    ...         return await agent.run(message)
    ...     except RunCancelled as error:
    ...         return f"The session {error.session_id} was cancelled."
    >>> asyncio.run(answer(create_deep_agent(scripted_model(["Hello."]), sandbox=False), "Hi"))
    'Hello.'
    """

    def __init__(self, message: str, *, session_id: str) -> None:
        super().__init__(message)
        self.session_id = session_id


class RunInterrupted(AgentError):
    """The run waits for a person. `interrupts` are the events of its pending requests.

    The run is stored. Continue it with `agent.resume(session_id)` or `agent.reject(session_id)`, in
    this process or another one.

    >>> look = {"tool_calls": [("ls", {})]}
    >>> agent = create_deep_agent(
    ...     scripted_model([look, "Done."]), sandbox=False, interrupt_on={"ls": True}
    ... )
    >>> async def approve():
    ...     try:
    ...         return await agent.run("Look around")
    ...     except RunInterrupted as waiting:
    ...         print(waiting.interrupts[0].metadata["tool_name"])
    ...         return await agent.resume(waiting.session_id, True)
    >>> asyncio.run(approve())
    ls
    'Done.'
    """

    def __init__(self, session_id: str, interrupts: Sequence[Any]) -> None:
        names = ", ".join(str(event.metadata.get("tool_name")) for event in interrupts)
        super().__init__(
            f"The run waits for a person to decide about {names or 'a request'}. Continue with "
            f"agent.resume({session_id!r}) or agent.reject({session_id!r})."
        )
        self.session_id = session_id
        self.interrupts = list(interrupts)
