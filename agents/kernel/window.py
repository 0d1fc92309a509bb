"""The context window of a model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """Limits of a model, in tokens."""

    size: int
    """The longest prompt and its reply together."""
    output: int
    """The longest reply."""
    compact_at: int | None = None
    """A longer prompt should be made shorter, although the window has room for it."""

    @property
    def room(self) -> int:
        """The longest prompt that leaves room for the longest reply."""
        return self.size - self.output
