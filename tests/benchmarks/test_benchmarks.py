"""The benchmarks themselves: that they run, and measure what they say."""

from __future__ import annotations

from pathlib import Path

import anthropic
import pytest

from benchmarks import overhead
from benchmarks.options import Options
from benchmarks.peers.environment import PeerMissing, peer_python
from benchmarks.processes import fake_model
from benchmarks.server import script


def test_the_fake_model_calls_its_tool_as_often_as_the_script_says() -> None:
    messages: list[anthropic.types.MessageParam] = [
        {"role": "user", "content": script("look", 2, pace_ms=1)}
    ]
    stops = []
    with fake_model() as url, anthropic.Anthropic(api_key="none", base_url=url) as client:
        for _ in range(3):
            with client.messages.stream(
                model="claude-sonnet-5-5", max_tokens=100, messages=messages
            ) as stream:
                reply = stream.get_final_message()
            stops.append(reply.stop_reason)
            messages.append({"role": "assistant", "content": reply.content})
            messages.append({"role": "user", "content": "Go on."})
    assert stops == ["tool_use", "tool_use", "end_turn"]


def test_vel_is_measured_beside_a_bare_loop() -> None:
    report = overhead.measure(Options(turns=(2,), rounds=1, peers=False))
    assert report.rows[0][:1] + report.rows[1][:1] == ["bare SDK loop", "Vel"]
    for name in ("bare SDK loop", "Vel"):
        found = report.figures[name]["2 turns"]
        assert [sample["calls"] for sample in found["samples"]] == [3]
        assert found["cpu_ms_per_call"] > 0
    assert report.figures["Vel"]["2 turns"]["db_bytes_per_turn"] >= 0
    assert "Peers left out, as asked (--no-peers)." in report.notes


def test_a_peer_that_cannot_be_installed_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(PeerMissing, match=r"deepagents could not be installed: .*found for"):
        peer_python("deepagents")
