"""Artifacts are sent as attachments; other files of the host are not available."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import pytest
from asgiref.sync import async_to_sync
from django.http.response import HttpResponseBase

from agents.models import AgentVersion, Run, StateFile
from agents.settings import DataSettings
from tests.agents.web.conftest import SignIn
from tests.support import site_writer

SECRET = b"not for anybody"


@pytest.fixture
def workspace(run: str) -> Path:
    """Create the thread's directories, as its first command does."""
    root = DataSettings.now().workspaces / site_writer.run(run)["thread"]
    for area in ("outputs", "workspace", "shared"):
        (root / area).mkdir(parents=True)
    (root / "workspace" / "scratch.txt").write_bytes(SECRET)
    return root


def body_of(response: HttpResponseBase) -> bytes:
    """Return the whole body, as an ASGI server reads it."""

    async def read() -> bytes:
        return b"".join([chunk async for chunk in response.streaming_content])

    return async_to_sync(read)()


def test_a_deliverable_is_an_attachment_that_no_browser_runs(
    run: str, workspace: Path, sign_in: SignIn
) -> None:
    page = b"<script>alert(1)</script>" * 30_000
    (workspace / "outputs" / "page.html").write_bytes(page)

    response = sign_in("olga").get(f"/runs/{run}/files/page.html")

    assert response.status_code == 200
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"] == 'attachment; filename="page.html"'
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert response["Content-Length"] == str(len(page))
    assert body_of(response) == page


def test_the_summary_lists_deliverables_with_their_links(
    run: str, workspace: Path, sign_in: SignIn
) -> None:
    names = ["report.md", "data/a b%2f?.csv", "päge.txt", 'quo"te']
    for name in names:
        path = workspace / "outputs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name.encode())
    os.mkfifo(workspace / "outputs" / "pipe")
    olga = sign_in("olga")

    outputs = olga.get(f"/runs/{run}/summary/").json()["outputs"]

    assert [file["name"] for file in outputs["files"]] == sorted(names)
    for file in outputs["files"]:
        assert file["size"] == len(file["name"].encode())
        assert body_of(olga.get(file["url"])) == file["name"].encode()


def test_a_name_with_a_line_break_is_listed_and_cannot_split_a_header(
    run: str, workspace: Path, sign_in: SignIn
) -> None:
    (workspace / "outputs" / "a\nX-Evil: 1").write_text("x")
    (workspace / "outputs" / "a\rb").write_text("x")
    olga = sign_in("olga")

    files = olga.get(f"/runs/{run}/summary/").json()["outputs"]["files"]

    assert {file["name"] for file in files} == {r"a\u000aX-Evil: 1", r"a\u000db"}
    sent = {olga.get(file["url"])["Content-Disposition"] for file in files}
    assert sent == {'attachment; filename="a_X-Evil: 1"', 'attachment; filename="a_b"'}


@pytest.mark.parametrize(
    "path",
    [
        "../workspace/scratch.txt",
        "..%2fworkspace%2fscratch.txt",
        "sub/../../workspace/scratch.txt",
        "/sandbox/workspace/scratch.txt",
        "../../../../../etc/passwd",
        "/etc/passwd",
        "host-link",
        "area-link",
        "other-thread-link",
        "directory-link/scratch.txt",
        "pipe",
        "directory",
        ".",
        "missing",
        "a%00b",
        "x" * 5000,
    ],
)
def test_only_deliverables_can_be_downloaded(
    path: str, run: str, workspace: Path, sign_in: SignIn
) -> None:
    outputs = workspace / "outputs"
    other = workspace.parent / "another-thread" / "outputs"
    other.mkdir(parents=True, exist_ok=True)
    (other / "secret.txt").write_bytes(SECRET)
    (outputs / "host-link").symlink_to("/etc/passwd")
    (outputs / "area-link").symlink_to("../workspace/scratch.txt")
    (outputs / "other-thread-link").symlink_to(other / "secret.txt")
    (outputs / "directory-link").symlink_to(workspace / "workspace")
    (outputs / "directory").mkdir()
    os.mkfifo(outputs / "pipe")

    response = sign_in("olga").get(f"/runs/{run}/files/{path}")

    assert response.status_code == 404
    assert SECRET not in response.content
    assert b"root:" not in response.content


def test_deliverables_are_for_readers_of_the_run(
    run: str, workspace: Path, sign_in: SignIn
) -> None:
    (workspace / "outputs" / "report.md").write_bytes(SECRET)
    path = f"/runs/{run}/files/report.md"
    assert sign_in("peter").get(path).status_code == 404
    site_writer.ask(run, "send", {})
    ada = sign_in("ada", approver=True)
    assert ada.get(path).status_code == 404
    assert ada.get(f"/runs/{run}/summary/").json()["outputs"]["files"] == []


def test_before_anything_was_made_there_is_an_empty_list(run: str, sign_in: SignIn) -> None:
    outputs = sign_in("olga").get(f"/runs/{run}/summary/").json()["outputs"]
    assert outputs == {"files": [], "is_cut": False, "not_shown": ""}


@pytest.mark.django_db(transaction=True)
def test_files_of_a_thread_without_a_sandbox_can_be_downloaded(run: str, sign_in: SignIn) -> None:
    version = AgentVersion.objects.get(runs=run)
    version.spec["sandbox"] = False
    version.save()
    thread = Run.objects.get(pk=run).thread
    StateFile.objects.create(thread=thread, path="/notes/a.md", content=b"kept")
    olga = sign_in("olga")

    (file,) = olga.get(f"/runs/{run}/summary/").json()["outputs"]["files"]

    assert file["name"] == "notes/a.md"
    assert body_of(olga.get(file["url"])) == b"kept"


@pytest.mark.parametrize("hidden", ["\u202e", "\u2066", "\u200f", "\u200b", "\ufeff", "\x1b"])
def test_the_name_of_a_download_has_no_hidden_characters(
    run: str, workspace: Path, sign_in: SignIn, hidden: str
) -> None:
    (workspace / "outputs" / f"report{hidden}fdp.exe").touch()

    response = sign_in("olga").get(f"/runs/{run}/files/report{quote(hidden)}fdp.exe")

    assert response.status_code == 200
    assert response["Content-Disposition"] == 'attachment; filename="report_fdp.exe"'


def test_names_in_all_scripts_are_kept(run: str, workspace: Path, sign_in: SignIn) -> None:
    name = "نمی\u200cخواهم 👩\u200d💻.txt"  # a zero-width non-joiner, and a joiner
    (workspace / "outputs" / name).touch()

    response = sign_in("olga").get(f"/runs/{run}/files/{quote(name)}")

    assert response["Content-Disposition"] == f"attachment; filename*=utf-8''{quote(name)}"
