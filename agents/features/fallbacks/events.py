"""The event of a fallback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from agents.events.event import Event


@dataclass(frozen=True, kw_only=True)
class ModelFallback(Event):
    """The agent's next model continues the run. A `step.reset` comes before it."""

    type: ClassVar[str] = "model.fallback"

    step: int
    """The number of the model call in the run that the next model makes."""
    from_provider: str
    """The provider of the model that is unavailable."""
    from_model: str
    """The name of the model that is unavailable."""
    provider: str
    """The provider of the model that continues."""
    model: str
    """The name of the model that continues."""
    code: str
    """The code of the error, as `overloaded`."""
    reason: str
    """The message of the error."""


EVENTS = [ModelFallback]
