"""Fallbacks as lines of the terminal, for `vel` during a run."""

from __future__ import annotations

from typing import Any, Protocol

from agents.features.fallbacks.events import ModelFallback
from agents.hidden_text import one_line


class Lines(Protocol):
    def note(self, text: str, style: str = "") -> None:
        """Print a line."""


def model_fallback(lines: Lines, data: dict[str, Any]) -> None:
    before = one_line(f"{data['from_provider']} {data['from_model']}", 200)
    after = one_line(f"{data['provider']} {data['model']}", 200)
    lines.note(f"⇢ {before} is unavailable: {after} continues", "yellow")


EVENT_LINES = [(ModelFallback.type, model_fallback)]
