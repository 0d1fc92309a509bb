"""The output of the command line when a fallback model continues."""

from __future__ import annotations

import pytest

from velproject.cli.commands.runs.display import Display


def test_a_fallback_model_is_shown_without_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    display = Display(live=False)
    display.event({"type": "step.reset", "data": {"step": 2, "reason": "overloaded"}})
    data = {
        "step": 2, "from_provider": "anthropic", "from_model": "claude\x1b[31m-x",
        "provider": "google", "model": "gemini-3.8-flash", "code": "overloaded", "reason": "busy",
    }  # fmt: skip
    display.event({"type": "model.fallback", "data": data})
    display.close()
    said = capsys.readouterr().err
    assert "is unavailable: google gemini-3.8-flash continues" in said
    assert "\x1b" not in said
