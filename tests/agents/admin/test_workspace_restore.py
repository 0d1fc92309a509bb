"""Restore a thread's files in the admin: with a permission, and after a confirmation."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.models import Run, SnapshotCause, WorkspaceSnapshot
from agents.services.files.snapshots import record_snapshot, snapshot_store, watched_areas
from agents.services.files.workspaces import assign_sandbox_uid, open_workspace, workspace_location
from agents.settings import DataSettings
from agents.states import RunStatus
from tests.agents.admin import rows
from tests.agents.admin.pages import client_of, messages_of, page_url, text_of

pytestmark = pytest.mark.django_db

MAY_LOOK = ("view_thread", "view_run", "view_all_runs")


@pytest.fixture
def step() -> WorkspaceSnapshot:
    """Change a file from one to two, in a run that has ended."""
    run = rows.put(rows.run(rows.user()), RunStatus.COMPLETED)
    assign_sandbox_uid(run.thread)
    areas = watched_areas(open_workspace(workspace_location(run.thread)))
    store = snapshot_store(run.thread_id)
    (areas["workspace"] / "a").write_text("one")
    store.take(areas)
    (areas["workspace"] / "a").write_text("two")
    taken = store.take(areas)
    return record_snapshot(
        run.thread_id, taken, SnapshotCause.CALL, run_id=run.pk, turn=1, position=0
    )


def file_of(step: WorkspaceSnapshot) -> Path:
    return DataSettings.now().workspaces / step.thread_id / "workspace" / "a"


def test_it_asks_and_then_restores(step: WorkspaceSnapshot) -> None:
    client = client_of(rows.staff("olga", *MAY_LOOK, "restore_workspace"))
    page = page_url(step.thread)
    assert "run 1, turn 1" in text_of(client.get(page))
    asked = client.post(page, {"step": step.pk, "to": "before"})
    assert "Restore the files to the state before" in text_of(asked)
    assert file_of(step).read_text() == "two"
    done = client.post(page, {"step": step.pk, "to": "before", "confirmed": "yes"}, follow=True)
    assert messages_of(done) == ["The files were restored: 1 written, 0 deleted."]
    assert file_of(step).read_text() == "one"
    assert "a restore by olga" in text_of(done)


def test_without_the_permission_it_is_not_offered_and_not_done(step: WorkspaceSnapshot) -> None:
    client = client_of(rows.staff("olga", *MAY_LOOK))
    page = page_url(step.thread)
    assert 'name="step"' not in text_of(client.get(page))
    asked = {"step": step.pk, "to": "before", "confirmed": "yes"}
    assert client.post(page, asked).status_code == 403
    assert file_of(step).read_text() == "two"


def test_refusals_are_reported(step: WorkspaceSnapshot) -> None:
    client = client_of(rows.superuser())
    page = page_url(step.thread)
    other = rows.run(rows.user("bob"))
    stranger = {"step": step.pk, "to": "before", "confirmed": "yes"}
    answer = client.post(page_url(other.thread), stranger, follow=True)
    assert messages_of(answer) == ["There is no such snapshot any more."]
    for odd in ("x", "-1", "9" * 30, ""):
        answer = client.post(page, {"step": odd, "to": "before"}, follow=True)
        assert messages_of(answer) == ["There is no such snapshot any more."]
    Run.objects.filter(pk=step.run_id).update(status=RunStatus.RUNNING)
    answer = client.post(page, stranger, follow=True)
    assert "at work" in messages_of(answer)[0]
    assert file_of(step).read_text() == "two"
