"""The demo with its toolbox: pandas computes, matplotlib draws; and the choice of the script."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import pytest

from agents.demo.task import PLAIN, TOOLBOX, WITH_TOOLBOX
from agents.doors.cli.errors import OK
from agents.models import Agent, Message, Run, ToolCall
from agents.services.demo import (
    demo_task,
    ensure_demo_agent,
    read_demo_outputs,
    start_demo_run,
)
from agents.services.files.workspaces import open_workspace, workspace_location
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.toolboxes.toolbox import Toolbox
from tests.agents.demo.played import play_demo
from tests.agents.demo.test_report import Reader, compare_every_number
from tests.support.hang import HANG
from tests.support.runs import make_user
from tests.velproject.in_process import call

pytestmark = [
    pytest.mark.bubblewrap,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(6 * HANG),  # the first test installs packages
]


def pixels(png: bytes) -> tuple[int, int, bytes]:
    """Return width, height and the decompressed rows of a PNG."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    place, data = 8, b""
    width = height = 0
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place : place + 8])
        body = png[place + 8 : place + 8 + length]
        if kind == b"IHDR":
            width, height = struct.unpack(">II", body[:8])
        elif kind == b"IDAT":
            data += body
        place += length + 12
    return width, height, zlib.decompress(data)


def summary_of(run: Run) -> dict[str, object]:
    workspace = open_workspace(workspace_location(run.thread)).directories["workspace"]
    found = json.loads((workspace / "summary.json").read_text())
    assert isinstance(found, dict)
    return found


def approximately(value: object) -> object:
    if isinstance(value, dict):
        return {key: approximately(each) for key, each in value.items()}
    if isinstance(value, list):
        return [approximately(each) for each in value]
    return pytest.approx(value, rel=1e-9) if isinstance(value, float) else value


@pytest.mark.slow
def test_pandas_and_the_standard_library_compute_the_same(
    demo_toolbox: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = play_demo(monkeypatch)
    assert run.status == "completed"
    assert {call.status for call in ToolCall.objects.filter(run=run)} == {"succeeded"}
    with_pandas = summary_of(run)
    assert with_pandas.pop("made_with") == "pandas"

    monkeypatch.setattr("agents.services.demo._has_packages", lambda name: False)
    monkeypatch.setattr("tests.agents.demo.played.make_user", lambda: run.owner)
    plain = summary_of(play_demo(monkeypatch))
    assert plain.pop("made_with") == "Python (standard library)"
    assert with_pandas == approximately(plain)


@pytest.mark.slow
def test_every_number_of_its_report_is_right_and_it_shows_a_heat_map(
    demo_toolbox: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = play_demo(monkeypatch)
    made = read_demo_outputs(run)
    assert set(made) == set(WITH_TOOLBOX.outputs)
    width, height, rows = pixels(made["rain.png"])
    assert width > 600
    assert height > 600
    assert len(set(rows)) > 50, "one colour is no picture"
    report = made["report.md"].decode()
    assert "](rain.png)" in report
    assert "Figures by pandas" in report
    compare_every_number(Reader(report))
    said = Message.objects.filter(run=run, role="assistant").order_by("-turn").first()
    assert said is not None
    assert "rain.png" in said.text


@pytest.mark.slow
def test_the_command_copies_all_three_and_keeps_the_toolbox(
    demo_toolbox: Toolbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.providers.scripts.demo.SECONDS_A_TURN", 0.0)
    assert call("demo", "--output", str(tmp_path)) == OK
    assert {path.name for path in tmp_path.iterdir()} == set(WITH_TOOLBOX.outputs)
    assert demo_toolbox.directory.exists(), "it was built again though it was there"


def test_the_agent_follows_the_toolbox_of_this_host(
    demo_toolbox: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = make_user()
    assert demo_task(start_demo_run(user)) == WITH_TOOLBOX
    assert Agent.objects.get(slug="demo").toolbox == TOOLBOX
    monkeypatch.setattr("agents.services.demo._has_packages", lambda name: False)
    assert demo_task(start_demo_run(user)) == PLAIN
    assert Agent.objects.get(slug="demo").toolbox == ""


def test_another_toolbox_that_the_operator_chose_stays(demo_toolbox: Toolbox) -> None:
    agent = ensure_demo_agent()
    Agent.objects.filter(pk=agent.pk).update(toolbox="data")
    assert demo_task(start_demo_run(make_user())) == PLAIN
    assert Agent.objects.get(pk=agent.pk).toolbox == "data"


@pytest.mark.slow
def test_the_named_packages_work_under_the_limits_of_the_sandbox(demo_toolbox: Toolbox) -> None:
    run = start_demo_run(make_user())
    workspace = open_workspace(workspace_location(run.thread))
    box = BubblewrapSandbox(workspace.policy(toolbox=demo_toolbox, timeout=60.0))
    result = box.execute_python(
        "import os, numpy, pandas\n"
        "square = numpy.ones((600, 600)) @ numpy.ones((600, 600))\n"
        "print(square.sum(), os.environ['OPENBLAS_NUM_THREADS'])\n"
        "import matplotlib.pyplot as plot\n"
        "plot.plot([1, 2]); plot.savefig('line.png'); print(plot.get_backend())\n"
    )
    assert result.stdout.lower() == "216000000.0 4\nagg\n"
    assert result.stderr == "", "matplotlib looked for fonts though their list was prepared"
