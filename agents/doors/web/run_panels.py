"""Sections that features add to the page of a run (`pages.RUN_PANELS`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agents.kernel.features import collect


@dataclass(frozen=True, slots=True)
class RunPanel:
    """A section of the page of a run."""

    template: str = ""
    """Empty: nothing is shown, and the panel is only its script."""
    script: str = ""
    """The path of a static JavaScript module. The element `run` dispatches each event of the run as
    the DOM event `run-event` with the event as its `detail`. It also dispatches `run-summary`, and
    `message-waits` with the line of each message that waits."""
    style: str = ""
    """The path of a static file with its CSS."""
    place: Literal["side", "left", "above", "message", "below"] = "side"
    """`side`: in the column about the run. `left`: before the conversation. `above` and `message`:
    above and below the message of the run. `below`: below the work of the agent."""


def run_panels() -> list[RunPanel]:
    return [panel for _, panel in collect("pages", "RUN_PANELS", skip_broken=True)]
