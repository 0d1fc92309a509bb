"""Workers that die in runs with skills: the run continues with the same skills and events."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models import F

from agents.engine import crash_points
from agents.engine.crash_points import CrashPoint
from agents.models import Epoch, Run, RunClock
from skills_app.models import ActiveSkill, SkillUse
from tests.agents.engine.test_recovery import crash_once
from tests.support.hang import HANG
from tests.support.runs import (
    drive_to_end,
    events,
    make_agent,
    make_user,
    script_file,
    start_run,
)
from tests.support.skills import write_skill

pytestmark = pytest.mark.django_db(transaction=True)

TURNS = [
    {"tool_calls": [{"name": "load_skill", "input": {"name": "stew"}}]},
    {"tool_calls": [{"name": "read_file", "input": {"path": "/skills/stew/SKILL.md"}}]},
    {"tool_calls": [{"name": "deactivate_skill", "input": {"name": "stew"}}]},
    {"text": "Done."},
]


@pytest.fixture(autouse=True)
def _no_hook_left() -> Iterator[None]:
    yield
    crash_points.crash_at(None)


def a_run(tmp_path: Path, mode: str) -> Run:
    write_skill(tmp_path / "skills")
    write_skill(tmp_path / "skills", "stew", requires="[beans]")
    user = make_user()
    make_agent(user, model=script_file(tmp_path, TURNS), skill_mode=mode)
    return start_run(user, skill_directories=(str(tmp_path / "skills"),))


def change(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills", body="Count them twice.")
    write_skill(tmp_path / "skills", "peas")


def check(run: Run, mode: str) -> None:
    """Check that the run ended as if its worker had not died."""
    assert run.status == "completed", run.error_message
    assert {entry.name: entry.version.number for entry in run.pinned.skill_set.entries.all()} == {
        "beans": 1,
        "stew": 1,
    }
    uses = list(SkillUse.objects.values_list("kind", "version__skill__name").order_by("id"))
    assert uses == [
        ("loaded", "beans"),
        ("loaded", "stew"),
        ("mounted", "stew"),
        ("deactivated", "stew"),
    ]
    assert list(ActiveSkill.objects.values_list("name", flat=True)) == ["beans"]
    assert [event["name"] for event in events(run, "skill.loaded")] == ["beans", "stew"]
    epochs = list(Epoch.objects.order_by("number"))
    expected: list[tuple[int, list[str]]] = [(1, [])]
    if mode == "system_prompt":
        expected += [(2, ["beans", "stew"]), (4, ["beans"])]
    versions = {entry.version_id: entry.name for entry in run.pinned.skill_set.entries.all()}
    keys = [(row.first_turn, row.part_keys.get("skills", [])) for row in epochs]
    found = [(turn, [versions[pk] for pk in ids]) for turn, ids in keys]
    assert found == expected
    for row in epochs:
        assert "twice" not in row.head["system"]
        assert "- peas" not in row.head["system"]


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("point", "after"),
    [
        (CrashPoint.REPLIED, 0),  # only the skills are pinned
        (CrashPoint.TOOL_DONE, 0),  # loaded, and not stored
        (CrashPoint.RESULTS_WRITTEN, 0),  # stored; in system_prompt mode there is no epoch yet
        (CrashPoint.REPLIED, 1),  # the first request under the new epoch
        (CrashPoint.RESULTS_WRITTEN, 2),
    ],
)
@pytest.mark.parametrize("mode", ["tool_result", "system_prompt"])
def test_a_run_continues_with_its_initial_skills(
    tmp_path: Path, mode: str, point: CrashPoint, after: int
) -> None:
    run = a_run(tmp_path, mode)
    crash_once(run, point, after=after)
    pinned = Run.objects.get(pk=run.pk).pinned.skill_set_id
    heads = list(Epoch.objects.order_by("number").values_list("head", flat=True))
    assert pinned is not None
    change(tmp_path)
    run = drive_to_end(run)
    assert run.pinned.skill_set_id == pinned
    assert (
        list(Epoch.objects.order_by("number").values_list("head", flat=True))[: len(heads)] == heads
    )
    check(run, mode)


def test_an_unpinned_run_gets_the_current_skills_when_it_continues(tmp_path: Path) -> None:
    run = a_run(tmp_path, "tool_result")
    crash_once(run, CrashPoint.CLAIMED)
    assert not Run.objects.get(pk=run.pk).has_begun
    write_skill(tmp_path / "skills", "peas")
    run = drive_to_end(run)
    entries = run.pinned.skill_set.entries
    assert set(entries.values_list("name", flat=True)) == {"beans", "peas", "stew"}


DRIVE = """
import os, signal, sys, time, django
django.setup()
from django.conf import settings
from django.db import connection
settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = sys.argv[1]
from agents.engine import crash_points
from agents.engine.worker import Worker
left = int(sys.argv[4]) + 1
def die(point):
    global left
    left -= point == sys.argv[3]
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
crash_points.crash_at(die)
worker = Worker()
worker.start()
worker.submit(sys.argv[2])
time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["tool_result", "system_prompt"])
def test_a_repeatedly_killed_worker_keeps_the_skills_consistent(tmp_path: Path, mode: str) -> None:
    run = a_run(tmp_path, mode)
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    name = str(connection.settings_dict["NAME"])
    deaths: list[tuple[Any, int]] = [
        (CrashPoint.REPLIED, 0),
        (CrashPoint.TOOL_DONE, 0),
        (CrashPoint.RESULTS_WRITTEN, 0),
    ]
    for point, after in deaths:
        arguments = [sys.executable, "-c", DRIVE, name, run.pk, point, str(after)]
        done = subprocess.run(arguments, env=environment, check=False, timeout=HANG)
        assert done.returncode == -signal.SIGKILL
        change(tmp_path)
        RunClock.objects.filter(run=run).update(lease_until=F("lease_until") - 3600)
    check(drive_to_end(run), mode)
