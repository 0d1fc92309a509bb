"""`vel demo`: its files in the directory, and its error messages."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest
from django.test import override_settings

from agents.demo.task import PLAIN
from agents.doors.cli.errors import FAILED, OK
from agents.engine.files.workspaces import ThreadFiles
from agents.models import Run
from agents.services.demo import read_demo_outputs
from sandbox.errors import SandboxUnavailable
from tests.agents.demo.played import play_at_once
from tests.agents.demo.test_chart import check_that_it_can_be_read
from tests.sandbox.places import reachable_directory
from tests.support.wheels import NO_INDEX
from tests.velproject.in_process import call
from velproject.cli.main import vel

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.bubblewrap
def test_it_copies_the_report_and_the_chart_and_prints_their_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    play_at_once(monkeypatch)
    output = tmp_path / "new" / "directory"
    assert call("demo", "--output", str(output), "--no-toolbox") == OK
    made = {path.name: path.read_bytes() for path in output.iterdir()}
    assert made == read_demo_outputs(Run.objects.get(parent=None))
    shown = capsys.readouterr()
    assert "I am the offline scripted model" in shown.out
    for name in PLAIN.outputs:
        assert str(output / name) in shown.err
    # Here, because a demo takes seconds.
    report = made["report.md"].decode()
    for words in ("offline scripted model", "no language model", "](chart.svg)"):
        assert words in report
    check_that_it_can_be_read(ElementTree.fromstring(made["chart.svg"]))


def test_it_fails_when_the_files_did_not_come_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unavailable(self: ThreadFiles, timeout: float) -> None:
        raise SandboxUnavailable("bubblewrap is not installed")

    play_at_once(monkeypatch)
    monkeypatch.setattr(ThreadFiles, "sandbox", unavailable)
    assert call("demo", "--output", str(tmp_path), "--no-toolbox") == FAILED
    assert Run.objects.get(parent=None).status == "completed"
    assert list(tmp_path.iterdir()) == []
    assert "ended without report.md and chart.svg" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_without_packages_it_prints_one_line_and_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    play_at_once(monkeypatch)
    for name, value in NO_INDEX.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("VEL_LOG_LEVEL", "ERROR")
    before = dict(os.environ)
    with reachable_directory() as data, override_settings(VEL={"DATA_DIR": data}):
        assert vel.main(["demo", "--output", str(tmp_path)], standalone_mode=False) == OK
    assert dict(os.environ) == before
    said = [line for line in capsys.readouterr().err.splitlines() if "No toolbox" in line]
    assert len(said) == 1
    assert "standard library" in said[0]
    assert {path.name for path in tmp_path.iterdir()} == set(PLAIN.outputs)
