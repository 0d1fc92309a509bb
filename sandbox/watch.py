"""Periodic checks of a running command."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Watch(ABC):
    """Base class of a periodic check. `due` is the time of the next one, as `time.monotonic`."""

    due: float

    @abstractmethod
    def check(self) -> str | None:
        """Check the command and set `due`. Return why it must be killed, or None."""

    def last_word(self) -> str | None:
        """Return a message about a command that has ended, or None."""
        return None

    def close(self) -> None:
        """Free all resources. Called once, however the command ended."""
        return None
