"""Sockets on unknown paths."""

from __future__ import annotations

from agents.doors.websockets.origin import Receive, Scope, Send


async def refuse_unknown_path(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse the handshake. Without this, every scanner would leave a traceback in the log."""
    await send({"type": "websocket.close"})
