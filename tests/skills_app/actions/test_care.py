"""Unpacked skills are kept as long as a run may need them again."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from agents.models import ApprovalRequest
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from skills_app.actions.sets import prune_unpacked_skills
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run
from tests.support.skills import write_skill

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def store() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="vel-store-", dir="/var/tmp") as name:
        Path(name).chmod(0o711)
        with override_settings(VEL_SKILLS={"STORE": f"{name}/skills"}):
            yield Path(name) / "skills"


def test_the_set_of_a_waiting_run_stays_at_any_age(store: Path, tmp_path: Path) -> None:
    write_skill(tmp_path / "skills")
    reads = {"name": "read_file", "input": {"path": "/skills/beans/SKILL.md"}}
    writes = {"name": "write_file", "input": {"path": "/a", "content": "x"}}
    user = make_user()
    script = [{"tool_calls": [reads]}, {"tool_calls": [writes]}, {"text": "Done."}]
    make_agent(user, model=script_file(tmp_path, script), interrupt_on={"write_file": True})
    run = start_run(user, skill_directories=(str(tmp_path / "skills"),))
    run = drive_to_end(run, until=("waiting", "failed"))
    for mark in (store / "used").iterdir():
        os.utime(mark, (0, 0))
    assert prune_unpacked_skills(0, apply=True) == []
    request = ApprovalRequest.objects.get()
    decide_approval(request.id, DecisionRequest("approve", request.digest), by=user)
    assert drive_to_end(run).status == "completed"
    for mark in (store / "used").iterdir():
        os.utime(mark, (0, 0))
    gone = prune_unpacked_skills(0, apply=True)
    assert [path.partition("/")[0] for path in gone] == ["sets", "packages"]
    assert os.listdir(store / "sets") == os.listdir(store / "packages") == []
