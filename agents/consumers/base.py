"""What all WebSocket consumers share."""

from __future__ import annotations

from typing import Any

from autobahn.exception import Disconnected
from channels.generic.websocket import AsyncWebsocketConsumer


class Consumer(AsyncWebsocketConsumer):
    """A consumer whose client may leave at any time."""

    async def send(self, *args: Any, **kwargs: Any) -> None:
        """Send a frame, or nothing if the client has just left: then `disconnect` follows."""
        try:
            await super().send(*args, **kwargs)
        except Disconnected:
            pass
