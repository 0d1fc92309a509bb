"""Joined messages as lines of the terminal."""

from __future__ import annotations

from typing import Any, Protocol

from agents.events.catalogue.messages import MessageJoined


class Lines(Protocol):
    def note(self, text: str, style: str = "") -> None:
        """Print a line."""


def message_joined(lines: Lines, data: dict[str, Any]) -> None:
    lines.note(f"→ {data['by']}: {data['text']}")


EVENT_LINES = [(MessageJoined.type, message_joined)]
"""Shown while `vel` follows a run."""
