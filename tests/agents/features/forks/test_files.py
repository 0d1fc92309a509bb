"""The files that a fork has at its start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import override_settings

from agents.features.forks.actions import ForkRequest, complete_fork, prepared_fork
from agents.features.forks.files import state_after
from agents.models import Effect, Run, SnapshotCause, Thread, WorkspaceSnapshot
from agents.services.agent_definitions.actions import save_agent
from agents.services.errors import Conflict, InvalidRequest
from agents.services.files.workspaces import assign_sandbox_uid, open_workspace, workspace_location
from agents.settings import DataSettings
from tests.agents.api.rows import answer_run, make_agent, make_run, make_user
from tests.agents.api.test_transcript import call

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    """Create a run of an agent with a sandbox, with a file in its workspace."""
    make_agent(sandbox=True)
    run = make_run(make_user("ann"))
    answer_run(run, "Done.")
    assign_sandbox_uid(run.thread)
    workspace = open_workspace(workspace_location(run.thread))
    (workspace.directories["workspace"] / "a").write_text("mine")
    return run


def step(run: Run, turn: int, effect: str = Effect.EXTERNAL) -> Any:
    return call(run, turn, effect=effect, started_at=run.created_at)


def snapshot(run: Run, turn: int | None, name: str, cause: str = SnapshotCause.CALL) -> None:
    WorkspaceSnapshot.objects.create(
        thread=run.thread, run=run, turn=turn, cause=cause, base=f"before {name}", manifest=name
    )


def fork(run: Run, files: str, **fields: Any) -> Path:
    """Return the directory of the fork's files."""
    request = ForkRequest(files=files, **fields)
    with prepared_fork(run, request, by=User.objects.get()) as made:
        complete_fork(made)
    return DataSettings.now().workspaces / made.thread.pk


def test_files_are_copied_only_when_they_are_asked_for(run: Run) -> None:
    assert not fork(run, "none").exists()
    assert (fork(run, "now") / "workspace" / "a").read_text() == "mine"


def test_a_fork_that_fails_in_the_end_leaves_no_files(run: Run) -> None:
    agent = run.thread.agent
    agent.system_prompt = "For {{context.customer}}."
    save_agent(agent)
    before = set(DataSettings.now().workspaces.iterdir())
    with pytest.raises(InvalidRequest):
        fork(run, "now", message="x", present_version=True)
    assert set(DataSettings.now().workspaces.iterdir()) == before
    assert Thread.objects.count() == 1


def test_files_are_those_of_the_step_and_not_of_now(run: Run) -> None:
    for turn in (1, 2):
        step(run, turn)
        snapshot(run, turn, f"turn {turn}")
    assert [state_after(run, turn) for turn in (0, 1, 2)] == ["before turn 1", "turn 1", None]


def test_files_that_were_restored_since_are_not_those_of_the_step(run: Run) -> None:
    step(run, 1)
    snapshot(run, 1, "turn 1")
    assert state_after(run, 1) is None
    snapshot(run, None, "restored", SnapshotCause.RESTORE)
    assert state_after(run, 1) == "turn 1"


def test_a_subagent_may_have_changed_shared_files(run: Run) -> None:
    step(run, 1)
    snapshot(run, 1, "turn 1")
    asking = step(run, 2, Effect.READ)
    assert state_after(run, 1) is None
    child = make_run(run.owner)
    Run.objects.filter(pk=child.pk).update(parent=run, parent_call=asking)
    assert state_after(run, 1) == "turn 1"


def test_without_snapshots_a_fork_does_not_claim_unchanged_files(run: Run) -> None:
    step(run, 1)
    assert state_after(run, 0) is None
    settings_without = override_settings(VEL={**settings.VEL, "SNAPSHOT_TURNS": 0})
    with settings_without, pytest.raises(Conflict) as refusal:
        state_after(run, 0)
    assert refusal.value.code == "files_not_kept"
