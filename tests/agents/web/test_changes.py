"""The page of the changes of each call: only for the owner, safe to read, with a restore."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User

from agents.models import Run, WorkspaceSnapshot
from agents.services.files.workspaces import open_workspace, workspace_location
from tests.agents.web.conftest import SignIn
from tests.support.runs import drive_to_end, make_agent, script_file, start_run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.bubblewrap]

HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.fixture
def changed(tmp_path: Path, sign_in: SignIn) -> Run:
    """Create a run of olga's whose two turns wrote the same file."""
    sign_in("olga")
    owner = User.objects.get(username="olga")
    turns = [
        {"tool_calls": [{"name": "write_file", "input": {"path": "a.txt", "content": text}}]}
        for text in ("one\n", f"one\n{HOSTILE}\n")
    ]
    model = script_file(tmp_path, [*turns, {"text": "done"}])
    agent = make_agent(owner, slug="writer", model=model, sandbox=True)
    run = drive_to_end(start_run(owner, agent=agent.slug))
    assert run.status == "completed"
    return run


def test_steps_and_their_diffs_are_shown_as_text(changed: Run, sign_in: SignIn) -> None:
    client = sign_in("olga")
    page = client.get(f"/runs/{changed.pk}/changes/").content.decode()
    assert "step 1" in page
    assert "step 2" in page
    last = WorkspaceSnapshot.objects.latest("pk")
    page = client.get(f"/runs/{changed.pk}/changes/?step={last.pk}").content.decode()
    assert "/sandbox/workspace/a.txt" in page
    assert "+&lt;script&gt;alert(1)&lt;/script&gt;⟨U+202E⟩" in page
    assert "<script>alert" not in page


def test_a_state_is_restored_and_that_can_be_undone(changed: Run, sign_in: SignIn) -> None:
    client = sign_in("olga")
    url = f"/runs/{changed.pk}/changes/"
    file = open_workspace(workspace_location(changed.thread)).directories["workspace"] / "a.txt"
    last = WorkspaceSnapshot.objects.latest("pk")
    page = client.post(url, {"step": last.pk, "to": "before"}, follow=True).content.decode()
    assert "Restored: 1 written, 0 deleted." in page
    assert file.read_text() == "one\n"
    client.post(url, {"step": WorkspaceSnapshot.objects.latest("pk").pk, "to": "before"})
    assert HOSTILE in file.read_text()


@pytest.mark.slow_cases
@pytest.mark.parametrize("data", [{}, {"step": "1x", "to": "before"}, {"step": "99999999"}])
def test_an_invalid_step_restores_nothing(
    changed: Run, sign_in: SignIn, data: dict[str, str]
) -> None:
    client = sign_in("olga")
    page = client.post(f"/runs/{changed.pk}/changes/", data, follow=True).content.decode()
    assert "There is no such step" in page
    assert WorkspaceSnapshot.objects.count() == 2


def test_other_users_cannot_see_or_restore_it(changed: Run, sign_in: SignIn) -> None:
    url = f"/runs/{changed.pk}/changes/"
    step = WorkspaceSnapshot.objects.latest("pk").pk
    other = sign_in("peter")
    User.objects.filter(username="peter").update(is_superuser=True, is_staff=True)
    assert other.get(url).status_code == 404
    assert other.post(url, {"step": step, "to": "before"}).status_code == 404
    assert WorkspaceSnapshot.objects.count() == 2


def test_a_step_of_another_thread_is_refused(changed: Run, sign_in: SignIn, run: str) -> None:
    client = sign_in("olga")
    step = WorkspaceSnapshot.objects.latest("pk").pk
    page = client.get(f"/runs/{run}/changes/?step={step}").content.decode()
    assert "a.txt" not in page
