"""A thread continues with its own files, or the caller gets an error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.models import Run, Thread
from agents.services.agent_definitions.actions import save_agent
from agents.services.errors import Conflict
from agents.services.runs.session_files import check_sandbox
from agents.settings import DataSettings
from tests.sandbox.places import reachable_directory
from tests.support.runs import drive_to_end, make_agent, make_user, start_run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


@pytest.fixture
def place() -> Iterator[Path]:
    with reachable_directory() as path:
        yield path


def test_another_directory_is_refused_and_nothing_is_stored(place: Path) -> None:
    user = make_user()
    make_agent(user)
    old, new = str(place / "old"), str(place / "new")
    run = start_run(user, key="main", workspace_path=old)
    drive_to_end(run)
    with pytest.raises(Conflict) as refused:
        start_run(user, key="main", workspace_path=new)
    assert refused.value.code == "other_directory"
    assert f"'main' works in {old}, not in {new}" in refused.value.message
    assert f"Use another session id to work in {new}, or name {old}" in refused.value.message
    assert Run.objects.count() == 1
    with pytest.raises(Conflict, match="not in"):
        start_run(user, thread=run.thread_id, workspace_path=new)


@pytest.mark.slow
def test_a_session_continues_with_the_same_no_or_a_default_directory(place: Path) -> None:
    user = make_user()
    make_agent(user)
    old = str(place / "old")
    for given in (
        {"workspace_path": old},
        {"workspace_path": old},
        {},
        {"workspace_path": str(place / "new"), "workspace_is_default": True},
    ):
        drive_to_end(start_run(user, key="main", **given))
    assert Thread.objects.get().workspace_path == old
    assert Run.objects.count() == 4


def test_a_directory_of_vel_is_named_in_the_refusal(place: Path) -> None:
    user = make_user()
    make_agent(user)
    run = drive_to_end(start_run(user, key="main"))
    with pytest.raises(Conflict) as refused:
        start_run(user, key="main", workspace_path=str(place))
    assert str(DataSettings.now().workspaces / run.thread_id) in refused.value.message
    assert "or name no working directory" in refused.value.message


@pytest.mark.parametrize("sandbox", [True, False])
def test_a_program_s_session_keeps_its_sandbox_or_stays_without(sandbox: bool) -> None:
    user = make_user()
    agent = make_agent(user, sandbox=sandbox)
    program = {"key": "main", "executor": "here:1:x"}
    run = start_run(user, **program)
    Run.objects.filter(pk=run.pk).update(status="completed")
    agent.sandbox = not sandbox
    save_agent(agent)
    with pytest.raises(Conflict) as refused:
        start_run(user, **program)
    assert refused.value.code == "other_directory"
    assert "Use another session id" in refused.value.message
    assert Run.objects.count() == 1
    # A fork without runs has the files of its source run.
    fork = Thread.objects.create(agent=agent, owner=user, forked_from=run)
    check_sandbox(fork, sandbox)
    with pytest.raises(Conflict):
        check_sandbox(fork, not sandbox)
