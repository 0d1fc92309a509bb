"""Files can be read and uploaded on any host, not only on the thread's host."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from agents.features.forks.actions import ForkRequest, complete_fork, prepared_fork
from agents.models import ApprovalRequest, Run, Thread, Upload, UploadContent, WorkspaceSnapshot
from agents.services.approvals.waiting_call import review_of
from agents.services.files.thread_files import artifacts_of
from agents.services.files.uploads import store_uploads
from agents.services.files.workspace_care import (
    kept_workspaces,
    remove_leftovers,
    remove_workspace,
)
from agents.services.machines.actions import declare_dead
from tests.agents.api.test_files import body_of
from tests.agents.snapshots.driven import command, play, write
from tests.support.machines import Machines, make_silent
from tests.support.runs import drive_to_end, start_run

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.bubblewrap,
    pytest.mark.both_databases,
]


@pytest.fixture
def run(machines: Machines, tmp_path: Path) -> Run:
    """Create a run of a thread on the host a."""
    with machines.on("a"):
        return play(
            tmp_path, write("notes.md", "one"), write("/sandbox/outputs/report.txt", "for you")
        )


@pytest.fixture
def web(run: Run) -> Client:
    client = Client()
    client.force_login(User.objects.get(pk=run.owner_id))
    return client


def paths(web: Client, thread: Thread | Run) -> list[str]:
    answer = web.get(f"/api/v1/threads/{getattr(thread, 'thread_id', thread.pk)}/files")
    assert answer.status_code == 200, answer.content
    return sorted(file["path"] for file in answer.json()["results"])


def test_files_are_shown_and_downloaded_on_another_host(
    machines: Machines, run: Run, web: Client
) -> None:
    with machines.on("b"):
        assert paths(web, run) == ["/sandbox/outputs/report.txt", "/sandbox/workspace/notes.md"]
        where = f"/api/v1/threads/{run.thread_id}/files/content?path=/sandbox/workspace/notes.md"
        assert body_of(web.get(where)) == b"one"
        page = web.get(f"/runs/{run.pk}/files/report.txt")
        assert page.status_code == 200
        assert body_of(page) == b"for you"
        assert [file.what for file in artifacts_of(run).files] == ["added", "added"]
        changes = web.get(f"/api/v1/threads/{run.thread_id}/changes?run={run.pk}&turn=1").json()
        assert changes["results"][0]["diff"] == "@@ -0,0 +1 @@\n+one"


def test_files_only_on_their_host_are_not_shown_in_an_older_state(
    machines: Machines, run: Run, web: Client
) -> None:
    last = WorkspaceSnapshot.objects.last()
    WorkspaceSnapshot.objects.filter(pk=last.pk).update(is_stored=False)
    with machines.on("b"):
        answer = web.get(f"/api/v1/threads/{run.thread_id}/files")
        assert answer.status_code == 409
        assert "the host a" in answer.json()["detail"]
        assert web.get(f"/runs/{run.pk}/").status_code == 200


def test_an_upload_arrives_through_any_host(
    machines: Machines, run: Run, web: Client, tmp_path: Path
) -> None:
    with machines.on("b"):
        sent = {"file": SimpleUploadedFile("data.csv", b"a,b\n")}
        answer = web.post(f"/api/v1/threads/{run.thread_id}/files", sent)
        assert answer.status_code == 201, answer.content
        assert "/sandbox/user_uploads/data.csv" in paths(web, run)
    assert not machines.workspace("a", run.thread, "user_uploads").joinpath("data.csv").exists()
    with machines.on("a"):
        play(tmp_path, command("cat ../user_uploads/data.csv > seen"), thread=run.thread)
    assert (machines.workspace("a", run.thread) / "seen").read_text() == "a,b\n"
    with machines.on("b"):
        (upload,) = Upload.objects.all()
        web.delete(f"/api/v1/threads/{run.thread_id}/files/{upload.pk}")
        upload.delete()
    with machines.on("a"):
        drive_to_end(start_run(User.objects.get(), thread=run.thread_id))
    assert not machines.workspace("a", run.thread, "user_uploads").joinpath("data.csv").exists()


def test_an_upload_is_immediately_on_its_own_host(
    machines: Machines, run: Run, tmp_path: Path
) -> None:
    with machines.on("a"):
        thread = Thread.objects.get(pk=run.thread_id)
        store_uploads(thread, [SimpleUploadedFile("x.txt", b"x")])
        store_uploads(thread, [SimpleUploadedFile("x.txt", b"y")])
    there = machines.workspace("a", run.thread, "user_uploads")
    assert sorted(path.name for path in there.iterdir()) == ["x-2.txt", "x.txt"]
    assert UploadContent.objects.count() == 2


@pytest.mark.slow
def test_restoring_names_the_host(machines: Machines, run: Run, web: Client) -> None:
    body = {"run": run.pk, "turn": 1, "to": "before"}
    with machines.on("b"):
        answer = web.post(
            f"/api/v1/threads/{run.thread_id}/restore", body, content_type="application/json"
        )
    assert answer.status_code == 409
    assert answer.json()["code"] == "files_elsewhere"
    assert "the host a" in answer.json()["detail"]
    assert (machines.workspace("a", run.thread) / "notes.md").exists()


def test_a_fork_on_another_host_has_the_files(machines: Machines, run: Run, tmp_path: Path) -> None:
    with machines.on("a"):
        store_uploads(
            Thread.objects.get(pk=run.thread_id), [SimpleUploadedFile("x.txt", b"of a person")]
        )
    for files in ("then", "now"):
        with machines.on("b"):
            ada = User.objects.get()
            with prepared_fork(run, ForkRequest(files=files), by=ada) as fork:
                complete_fork(fork)
            thread = Thread.objects.get(pk=fork.thread.pk)
            assert (thread.host, thread.placement) == ("", 1)
            assert not machines.workspace("b", thread).exists()
        with machines.on("c"):
            play(tmp_path, command("cat notes.md ../user_uploads/x.txt > both"), thread=thread)
        assert (machines.workspace("c", thread) / "both").read_text() == "oneof a person"


def test_removing_a_hosts_old_files_removes_nothing_else(
    machines: Machines, run: Run, tmp_path: Path
) -> None:
    """Retention runs on a host that was declared dead and is back."""
    with machines.on("b"):
        make_silent("a")
        declare_dead("a")
        play(tmp_path, command("ls"), thread=run.thread)
    rows = WorkspaceSnapshot.objects.count()
    with machines.on("a"):
        (kept,) = kept_workspaces()
        remove_workspace(kept)
    assert not machines.workspace("a", run.thread).exists()
    assert WorkspaceSnapshot.objects.count() == rows
    assert (machines.directory / "storage/snapshots" / run.thread_id / "objects").exists()


@pytest.mark.parametrize("continues", [False, True])
def test_stored_snapshots_are_removed_after_a_failure_of_the_storage(
    machines: Machines, run: Run, continues: bool
) -> None:
    stored = machines.directory / "storage/snapshots" / run.thread_id
    aside = stored.with_name("aside")
    snapshot = WorkspaceSnapshot.objects.filter(thread=run.thread).first()
    with machines.on("a"):
        (kept,) = kept_workspaces()
        stored.rename(aside)
        stored.write_text("The storage fails: this is no directory.")
        with pytest.raises(OSError, match="NotADirectoryError"):
            remove_workspace(kept)
        with pytest.raises(OSError, match="NotADirectoryError"):
            list(remove_leftovers())
        stored.unlink()
        aside.rename(stored)
        if continues:
            snapshot.save(force_insert=True)
        (removed,) = remove_leftovers()
        assert run.thread_id in removed
    assert any(path.is_file() for path in stored.rglob("*")) == continues


@pytest.mark.slow
def test_an_approval_shows_the_file_of_another_host(machines: Machines, tmp_path: Path) -> None:
    asks = {"write_file": True}
    with machines.on("a"):
        run = play(tmp_path, command("echo old > notes.md"))
        play(
            tmp_path,
            write("notes.md", "new\n"),
            thread=run.thread,
            ends="waiting",
            interrupt_on=asks,
        )
    with machines.on("b"):
        request = ApprovalRequest.objects.get()
        assert "old" in str(review_of(request))


def test_uploads_from_a_single_host_move_along(
    machines: Machines, run: Run, tmp_path: Path
) -> None:
    with machines.on("a"):
        store_uploads(
            Thread.objects.get(pk=run.thread_id), [SimpleUploadedFile("x.txt", b"of a person")]
        )
        UploadContent.objects.all().delete()
        play(tmp_path, command("true"), thread=run.thread)
    with machines.on("b"):
        make_silent("a")
        declare_dead("a")
        play(tmp_path, command("cat ../user_uploads/x.txt > seen"), thread=run.thread)
    assert (machines.workspace("b", run.thread) / "seen").read_text() == "of a person"
