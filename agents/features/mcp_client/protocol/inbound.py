"""What of a server's messages is handed on: answers, and requests that are then refused.

Notifications end here. A server that sends more than anybody can want is cut off.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agents.features.mcp_client.protocol.limits import MAX_MESSAGES

LIST_CHANGED = "notifications/tools/list_changed"


class Flood(Exception):
    """The server sends without end."""


@dataclass
class Inbound:
    """Counts and sorts. Used on one connection's loop only."""

    list_changed: bool = False
    unreadable: int = 0
    _count: int = field(default=0)

    def begin(self) -> None:
        """A request goes out: its answer may come with some messages beside it."""
        self._count = 0

    def wanted(self, message: Any) -> bool:
        """Whether `message`, of `mcp_types`, goes on. Raises `Flood`."""
        self.count()
        if hasattr(message, "method") and not hasattr(message, "id"):
            self.list_changed = self.list_changed or message.method == LIST_CHANGED
            return False
        return True

    def count(self) -> None:
        self._count += 1
        if self._count > MAX_MESSAGES:
            raise Flood
