"""Changed files in a user's own directory that can run code outside the sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.utils import timezone

from agents.events.catalogue.files import WorkspaceRunsOutside
from agents.models import Run, RunEvent
from agents.services.files.outside_changes import keep_state_before, unreported_changes
from agents.services.files.workspaces import workspace_location
from sandbox.own_directory.rules import FileRules
from sandbox.own_directory.scan import take_inventory
from tests.support.runs import make_agent, make_user, start_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Create a run in a directory with a new Makefile."""
    owner = make_user()
    make_agent(owner)
    run = start_run(owner)
    project = tmp_path / "project"
    project.mkdir()
    run.thread.workspace_path = str(project)
    run.thread.save()
    keep_state_before(workspace_location(run.thread), take_inventory(project, FileRules()))
    (project / "Makefile").write_text("all:\n")
    return run


def test_changes_are_reported_before_their_event(run: Run) -> None:
    found = unreported_changes(run)
    assert found is not None
    assert [change.path for change in found.changes] == ["Makefile"]


def test_the_end_event_reports_them_once_even_if_the_old_state_remains(
    run: Run,
) -> None:
    RunEvent.objects.create(
        run=run, seq=99, type=WorkspaceRunsOutside.type, data="{}", created_at=timezone.now()
    )
    assert unreported_changes(run), "a run that was resumed after an earlier report"
    run.status = "completed"
    assert unreported_changes(run) is None
