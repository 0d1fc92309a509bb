"""The context window of a model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """The limits of a model, in tokens."""

    size: int
    """The maximum length of a prompt and its reply together."""
    output: int
    """The maximum length of a reply."""
    compact_at: int | None = None
    """The length from which a prompt should be compacted, although it fits into the window."""

    @property
    def room(self) -> int:
        """Return the maximum length of a prompt that leaves room for the longest reply."""
        return self.size - self.output
