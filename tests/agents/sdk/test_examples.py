"""Each example runs offline, in this process and its database."""

from __future__ import annotations

import asyncio
import os
import runpy
from pathlib import Path
from typing import Any

import pytest

from agents.sdk.environment.process import engine
from tests.agents.sdk.scripts import ROOT, place

__all__ = ["place"]

EXPECTED = {
    "basic": ["[write_file]", "Files: /haiku.md"],
    "custom_skill": ["Found: house-style", "[load_skill]", "The letter is in"],
    "data_analysis": ["growth 50%", "[file] ", "# Signups", '"row_count":3'],
    "decision_workflow": ["place_order: {", "Nothing was ordered."],
    "harness_file": ["checker, lawyer", "desk-rules", "tool-approval-request", "['/report.md']"],
    "message_queue": ["thread_busy", "asked: budget", "Beta is known.", "guardrail_input"],
    "own_backend": ["All checks", "asked: upload", "Saw", "['upload --dry-run /plan.md']"],
    "research_report": ["[market-researcher] subagent_start", "[tech-researcher] subagent_end"],
    "session_state": ["[x] Write", "equal: True", "['tea', 'tea']", "refused: load_state"],
    "several_approvals": ["buyer asks", "more questions", "['3 tea', '1 bread']"],
    "subagent_research": ["fact-checker", "Two of three sources agree", "second claim: completed"],
    "typed_answer": ["***", "Total 30.5 EUR", "[{'n': 1}]"],
    "with_skills": ["- reporting:", "[load_skill", "second offer"],
}


SLOW = {
    *("harness_file", "message_queue", "session_state", "several_approvals", "typed_answer"),
}
"""Examples that other tests cover."""


def test_every_example_is_run_here_or_with_the_generated_client() -> None:
    of_rest = {"rest_team"}
    assert {file.stem for file in (ROOT / "examples").glob("*.py")} == of_rest | set(EXPECTED)


@pytest.mark.bubblewrap
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name in sorted(EXPECTED)
    ],
)
def test_an_example(
    name: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("DECISION", "n")
    monkeypatch.setattr("tempfile.tempdir", str(place))
    os.chmod(place, 0o755)  # the sandbox's account needs this access
    program: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
    asyncio.run(program["main"]())
    assert not engine.is_running, "The example leaves an agent or a backend open: close it."
    out = capsys.readouterr().out
    for text in EXPECTED[name]:
        assert text in out
