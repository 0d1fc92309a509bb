"""The public format of a run: the names and fields of its events."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest

from agents.models import Run, RunEvent
from tests.agents.demo.played import play_demo
from tests.agents.events.demo_log import normalised

RECORDED = Path(__file__).parent / "recorded/demo_run.jsonl"
"""The logs of the demo's run and of its two subagents, separated by empty lines."""


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.django_db(transaction=True)
def test_the_events_of_the_demo_are_as_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """RECORD_EVENTS=1 records the events again after a change of the demo."""
    run = play_demo(monkeypatch)
    members = [run, *Run.objects.filter(parent=run).order_by("parent_index")]
    logs = [normalised(rows_of(member)) for member in members]
    found = "\n\n".join("\n".join(lines) for lines in logs) + "\n"

    if os.environ.get("RECORD_EVENTS"):
        RECORDED.write_text(found)
    changes = difflib.unified_diff(
        RECORDED.read_text().splitlines(), found.splitlines(), "recorded", "found", n=0, lineterm=""
    )
    assert not list(changes)


def rows_of(run: Run) -> list[tuple[str, str]]:
    return list(RunEvent.objects.filter(run=run).order_by("seq").values_list("type", "data"))
