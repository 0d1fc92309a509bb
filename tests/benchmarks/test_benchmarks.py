"""The benchmarks run and measure correctly."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import anthropic
import pytest

from benchmarks import overhead, processes, watchers
from benchmarks.options import Options
from benchmarks.peers.environment import PeerMissing, peer_python
from benchmarks.processes import HarnessFailed, fake_model, vel_environment
from benchmarks.server import script
from tests.support.migrated import copy_postgres, copy_sqlite


@pytest.mark.slow
def test_the_fake_model_calls_its_tool_according_to_the_script() -> None:
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


def test_a_model_server_that_does_not_start_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "server.py").write_text("raise SystemExit(3)")
    monkeypatch.setattr(processes, "ROOT", tmp_path)
    with pytest.raises(HarnessFailed, match="exit code 3"), fake_model():
        pass


@pytest.mark.slow
def test_watchers_are_measured_with_a_separate_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VEL_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("VEL_TEST_SHARED_DIR", raising=False)
    monkeypatch.setattr(watchers, "WATCHERS", (2,))
    monkeypatch.setattr(watchers, "BATCHES", 3)
    report = watchers.measure(Options())
    assert [row[-1] for row in report.rows] == ["yes"]
    assert list(tmp_path.iterdir()) == []
    assert os.environ["VEL_DATA_DIR"] == str(tmp_path)
    assert "VEL_TEST_SHARED_DIR" not in os.environ


@pytest.fixture
def _migrated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start Vel with migrated databases to save time. The benchmarks do not measure migrations."""

    def environment(directory: Path, model_url: str, database_url: str = "") -> dict[str, str]:
        if not database_url:
            copy_sqlite(directory / "vel.sqlite3")
        return vel_environment(directory, model_url, database_url)

    @contextmanager
    def server() -> Iterator[str]:
        url = request.getfixturevalue("postgres_url")
        copy_postgres(url, "benchmarks")
        yield urlsplit(url)._replace(path="/benchmarks").geturl()

    monkeypatch.setattr(overhead, "vel_environment", environment)
    monkeypatch.setattr(overhead, "postgres_server", server)


@pytest.mark.slow
@pytest.mark.usefixtures("_migrated")
def test_vel_is_compared_with_a_bare_loop() -> None:
    report = overhead.measure(Options(turns=(2,), rounds=1, peers=False))
    assert report.rows[0][:1] + report.rows[1][:1] == ["bare SDK loop", "Vel"]
    for name in ("bare SDK loop", "Vel"):
        found = report.figures[name]["2 turns"]
        assert [sample["calls"] for sample in found["samples"]] == [3]
        assert found["cpu_ms_per_call"] > 0
    assert report.figures["Vel"]["2 turns"]["db_bytes_per_turn"] >= 0
    assert "Peers not measured (--no-peers)." in report.notes


@pytest.mark.slow
def test_a_peer_that_cannot_be_installed_gives_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(PeerMissing, match=r"deepagents could not be installed: .*found for"):
        peer_python("deepagents")
