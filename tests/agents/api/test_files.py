"""A thread's files over HTTP: only for its owner, and no other files of the host."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http.response import HttpResponseBase
from django.test import Client, override_settings
from rest_framework.test import APIClient

from agents.models import Run, SnapshotCause, StateFile, Thread
from agents.services.files.snapshots import record_snapshot, snapshot_store, watched_areas
from agents.services.files.uploads import safe_name
from agents.services.files.workspaces import assign_sandbox_uid, open_workspace, workspace_location
from agents.settings import DataSettings
from tests.agents.api.rows import (
    answer_run,
    client_for,
    make_agent,
    make_run,
    make_user,
    post,
    problem_of,
)

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = b"not for anybody"


@pytest.fixture
def run() -> Run:
    """Return a finished run of ann's with two files."""
    make_agent()
    run = make_run(make_user("ann"))
    answer_run(run, "Done.")
    assign_sandbox_uid(run.thread)
    open_workspace(workspace_location(run.thread))
    (root(run.thread) / "workspace" / "a.txt").write_text("one\n")
    (root(run.thread) / "outputs" / "page.html").write_text("<script>")
    return run


def root(thread: Thread) -> Path:
    return DataSettings.now().workspaces / thread.pk


def ann(run: Run, *scopes: str) -> APIClient:
    return client_for(run.owner, *scopes)


def url(run: Run, rest: str = "files") -> str:
    return f"/api/v1/threads/{run.thread_id}/{rest}"


def body_of(response: HttpResponseBase) -> bytes:
    async def read() -> bytes:
        return b"".join([chunk async for chunk in response.streaming_content])

    return async_to_sync(read)()


def step(run: Run, change: Callable[[Path], Any], turn: int = 1) -> Any:
    """Change the files as a call of `turn` does, with its snapshot."""
    areas = watched_areas(open_workspace(workspace_location(run.thread)))
    store = snapshot_store(run.thread_id)
    store.take(areas)
    change(root(run.thread))
    taken = store.take(areas)
    return record_snapshot(
        run.thread_id, taken, SnapshotCause.CALL, run_id=run.pk, turn=turn, position=0
    )


def upload(client: Any, run: Run, *files: SimpleUploadedFile, **more: Any) -> Any:
    return client.post(url(run), {"file": list(files), **more}, format="multipart")


def test_files_are_listed_with_their_sizes(run: Run) -> None:
    answer = ann(run).get(url(run)).json()
    assert {(file["path"], file["size"]) for file in answer["results"]} == {
        ("/sandbox/workspace/a.txt", 4),
        ("/sandbox/outputs/page.html", 8),
    }
    below = ann(run).get(url(run), {"path": "/sandbox/outputs"}).json()
    assert [file["path"] for file in below["results"]] == ["/sandbox/outputs/page.html"]


def test_a_file_is_an_attachment_that_no_browser_runs(run: Run) -> None:
    response = ann(run).get(url(run, "files/content"), {"path": "/sandbox/outputs/page.html"})
    assert response.status_code == 200
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"] == 'attachment; filename="page.html"'
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert body_of(response) == b"<script>"


@pytest.mark.slow_cases
@pytest.mark.both_databases
@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../../../../etc/passwd",
        "/sandbox/outputs/../../../etc/passwd",
        "host-link",
        "host-directory/passwd",
        "pipe",
        "/sandbox",
        ".",
        "missing",
        "a\0b",
        "x" * 4000,
    ],
)
def test_no_path_leads_out(run: Run, path: str) -> None:
    work = root(run.thread) / "workspace"
    (work / "host-link").symlink_to("/etc/passwd")
    (work / "host-directory").symlink_to("/etc")
    os.mkfifo(work / "pipe")
    response = ann(run).get(url(run, "files/content"), {"path": path})
    assert response.status_code in (400, 404)
    assert b"root:" not in response.content


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("method", "rest", "body"),
    [
        ("get", "files", None),
        ("get", "files/content?path=a.txt", None),
        ("get", "changes", None),
        ("get", "changes?step=1", None),
        ("post", "restore", {"step": 1, "to": "before"}),
    ],
)
def test_the_files_of_others_are_not_there(
    run: Run, method: str, rest: str, body: dict[str, Any] | None
) -> None:
    for stranger in (make_user("bob", "view_all_runs"), make_user("root", superuser=True)):
        client = client_for(stranger)
        answer = (
            client.get(url(run, rest)) if method == "get" else post(client, url(run, rest), body)
        )
        assert answer.status_code == 404
        assert problem_of(answer)["code"] == "unknown_thread"
        assert upload(client, run, SimpleUploadedFile("x", b"x")).status_code == 404
    assert not (root(run.thread) / "user_uploads" / "x").exists()


def test_files_need_their_scopes(run: Run) -> None:
    step(run, lambda files: (files / "workspace" / "b").write_text("b"))
    reader, starter = ann(run, "read"), ann(run, "run")
    assert upload(reader, run, SimpleUploadedFile("x", b"x")).status_code == 403
    assert post(reader, url(run, "restore"), {"step": 1, "to": "after"}).status_code == 403
    assert starter.get(url(run)).status_code == 403
    assert upload(starter, run, SimpleUploadedFile("x", b"x")).status_code == 201


def test_a_session_needs_its_csrf_token(run: Run) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(run.owner)
    answer = client.post(url(run), {"file": SimpleUploadedFile("x", b"x")})
    assert answer.status_code == 403
    assert not (root(run.thread) / "user_uploads" / "x").exists()


def test_an_upload_belongs_to_the_workspace_and_replaces_nothing(run: Run) -> None:
    before = run.thread.workspace_generation
    answers = [upload(ann(run), run, SimpleUploadedFile("d.csv", b"%d" % n)) for n in range(2)]
    assert [answer.json()["results"] for answer in answers] == [
        [{"path": "/sandbox/user_uploads/d.csv", "size": 1}],
        [{"path": "/sandbox/user_uploads/d-2.csv", "size": 1}],
    ]
    directory = root(run.thread) / "user_uploads"
    assert (directory / "d.csv").read_text() == "0"
    found = (directory / "d.csv").stat()
    assert found.st_uid == directory.stat().st_uid
    assert stat.S_IMODE(found.st_mode) == 0o644
    # The upload makes earlier approvals stale.
    run.thread.refresh_from_db()
    assert run.thread.workspace_generation > before


def test_a_planted_link_is_not_written_through(run: Run, tmp_path: Path) -> None:
    """Commands cannot write to user_uploads. Even if a link is there, its target is not changed."""
    victim = tmp_path / "victim"
    victim.write_bytes(SECRET)
    (root(run.thread) / "user_uploads" / "d.csv").symlink_to(victim)
    answer = upload(ann(run), run, SimpleUploadedFile("d.csv", b"evil"))
    assert problem_of(answer)["code"] == "upload_failed"
    assert victim.read_bytes() == SECRET


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\a\\b.txt", "b.txt"),
        (".bashrc", "bashrc"),
        ("-rf", "rf"),
        ("..", "upload"),
        ("", "upload"),
        ("a\nb\x1b[31m.txt", "a_b_[31m.txt"),
        ("invoice\u202efdp.exe", "invoice_fdp.exe"),
        ("ä" * 300 + ".csv", "ä" * 88 + ".csv"),
        ("\ud800.txt", "?.txt"),
    ],
)
def test_odd_names_are_made_safe(given: str, stored: str) -> None:
    assert safe_name(given) == stored
    assert len(stored.encode()) <= 180


def test_uploads_have_limits(run: Run) -> None:
    small = {**settings.VEL, "UPLOAD_BYTES": 100, "UPLOAD_FILES": 3}
    client = ann(run)
    with override_settings(VEL=small):
        assert upload(client, run, SimpleUploadedFile("a", b"x" * 101)).status_code == 400
        assert upload(client, run, SimpleUploadedFile("a", b"x" * 60)).status_code == 201
        over = upload(client, run, SimpleUploadedFile("b", b"x" * 60))
        assert problem_of(over)["code"] == "upload_too_large"
        many = [SimpleUploadedFile(f"{n}", b"") for n in range(3)]
        assert upload(client, run, *many).status_code == 400
        assert upload(client, run, *many[:2]).status_code == 201
        huge = upload(client, run, SimpleUploadedFile("c", b"x" * 1_100_000))
        assert problem_of(huge)["code"] == "body_too_large"
    assert len(list((root(run.thread) / "user_uploads").iterdir())) == 3


def test_a_form_without_a_file_or_with_more_is_refused(run: Run) -> None:
    assert ann(run).post(url(run), {}, format="multipart").status_code == 400
    file = SimpleUploadedFile("a", b"x")
    assert upload(ann(run), run, file, path="/etc/passwd").status_code == 400


def test_a_thread_without_a_sandbox_keeps_uploads_in_rows(run: Run) -> None:
    version = run.agent_version
    version.spec["sandbox"] = False
    version.save()
    assert upload(ann(run), run, SimpleUploadedFile("a.txt", b"hello")).status_code == 201
    assert StateFile.objects.get(thread=run.thread).path == "/user_uploads/a.txt"
    answer = ann(run).get(url(run)).json()
    assert answer["results"] == [{"path": "/user_uploads/a.txt", "type": "file", "size": 5}]


def test_a_turns_changes_are_shown_and_restored(run: Run) -> None:
    step(run, lambda files: (files / "workspace" / "a.txt").write_text("two\n"), turn=2)
    client = ann(run)
    (listed,) = client.get(url(run, "changes")).json()["results"]
    assert (listed["run"], listed["turn"], listed["changed"]) == (run.pk, 2, 1)
    for cursor in ("abc", "9" * 30):
        assert client.get(url(run, "changes"), {"cursor": cursor}).status_code in (200, 400)
    changes = client.get(url(run, "changes"), {"run": run.pk, "turn": 2}).json()
    assert changes == {
        "results": [
            {
                "path": "/sandbox/workspace/a.txt",
                "kind": "file",
                "what": "changed",
                "size_before": 4,
                "size_after": 4,
                "diff": "@@ -1 +1 @@\n-one\n+two",
                "note": "",
            }
        ],
        "total": 1,
    }
    done = post(client, url(run, "restore"), {"run": run.pk, "turn": 2, "to": "before"})
    assert done.json() == {"written": 1, "deleted": 0, "failed": []}
    assert (root(run.thread) / "workspace" / "a.txt").read_text() == "one\n"
    newest = client.get(url(run, "changes")).json()["results"][0]
    assert newest["cause"] == "restore"
    post(client, url(run, "restore"), {"step": newest["step"], "to": "before"})
    assert (root(run.thread) / "workspace" / "a.txt").read_text() == "two\n"


def test_a_busy_thread_is_not_restored(run: Run) -> None:
    row = step(run, lambda files: (files / "workspace" / "b").write_text("b"))
    Run.objects.filter(pk=run.pk).update(status="running")
    answer = post(ann(run), url(run, "restore"), {"step": row.pk, "to": "before"})
    assert problem_of(answer)["code"] == "thread_busy"
    assert (root(run.thread) / "workspace" / "b").exists()


@pytest.mark.parametrize(
    "body",
    [
        {"to": "before"},
        {"step": 1},
        {"step": 1, "run": "x", "turn": 1, "to": "before"},
        {"run": "x", "to": "before"},
        {"step": 1, "to": "sideways"},
        {"step": 1, "to": "before", "path": "/etc"},
    ],
)
def test_a_restore_that_makes_no_sense(run: Run, body: dict[str, Any]) -> None:
    assert post(ann(run), url(run, "restore"), body).status_code == 400


def test_another_threads_step_is_not_this_threads(run: Run) -> None:
    row = step(run, lambda files: (files / "workspace" / "b").write_bytes(SECRET))
    other = make_run(make_user("bob"))
    client = client_for(other.owner)
    for rest in (f"changes?step={row.pk}", f"changes?run={run.pk}&turn=1"):
        answer = client.get(url(other, rest))
        assert problem_of(answer)["code"] == "unknown_snapshot"
