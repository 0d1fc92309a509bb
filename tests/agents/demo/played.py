"""Playing the demo to its end in this process."""

from __future__ import annotations

import pytest

from agents.models import Run
from agents.providers.scripts import demo
from agents.services.demo import start_demo_run
from tests.support.runs import drive_to_end, make_user


def play_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the script answer without the pauses that are there to be watched."""
    monkeypatch.setattr(demo, "SECONDS_A_TURN", 0.0)


def play_demo(monkeypatch: pytest.MonkeyPatch) -> Run:
    play_at_once(monkeypatch)
    return drive_to_end(start_demo_run(make_user()))
