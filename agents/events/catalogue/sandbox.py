"""Sandbox: network connections of commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from agents.events.event import Event


@dataclass(frozen=True, kw_only=True)
class SandboxConnection(Event):
    """A command connected to a network destination, or was refused to.

    It is written with the result of the command, once for each destination.
    """

    type: ClassVar[str] = "sandbox.connection"

    call_id: str
    """The call that ran the command."""
    host: str
    """The name or address of the destination. Empty if the request was not understood."""
    port: int
    """Its port."""
    allowed: bool
    """Whether the connection was allowed."""
    reason: str
    """Why it was refused, or how it ended."""
    sent: int
    """Bytes sent, of all `count` connections."""
    received: int
    """Bytes received, of all `count` connections."""
    count: int
    """How many connections were alike."""


EVENTS = [SandboxConnection]
