"""The context window of a model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """Limits of a model, in tokens."""

    size: int
    """The limit of a prompt and its reply together."""
    output: int
    """The limit of the reply."""
    compact_at: int | None = None
    """A longer prompt should be compacted, although it fits into the window."""

    @property
    def room(self) -> int:
        """The limit of a prompt that leaves space for the longest reply."""
        return self.size - self.output
