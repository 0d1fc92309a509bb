"""A periodic check of a running command."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Watch(ABC):
    """One periodic check. `due` is the time of the next check, as `time.monotonic`."""

    due: float

    @abstractmethod
    def check(self) -> str | None:
        """Check now, and set `due`. Return why the command must be killed, or None."""

    def last_word(self) -> str | None:
        """A message for after the end of the command, or None."""
        return None

    def close(self) -> None:
        """Free all resources. Called once, after every kind of ending."""
        return None
