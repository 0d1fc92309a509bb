"""Compactions as lines of the terminal, for `vel` during a run."""

from __future__ import annotations

from typing import Any, Protocol

from agents.features.compaction.events import ContextCompacted

_METHODS = {"journal": "summarized from the journal", "clipping": "cut"}


class Lines(Protocol):
    def note(self, text: str, style: str = "") -> None:
        """Print a line."""


def context_compacted(lines: Lines, data: dict[str, Any]) -> None:
    method = _METHODS.get(str(data.get("by")), "summarized by the model")
    before, after = f"{data['before']:,}", f"{data['after']:,}"
    lines.note(f"↕ earlier turns were {method}: {before} → {after} tokens")


EVENT_LINES = [(ContextCompacted.type, context_compacted)]
