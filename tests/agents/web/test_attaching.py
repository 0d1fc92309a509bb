"""A user's attachments are stored before the run starts."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings

from agents.models import Agent, Message, Run, Thread
from agents.settings import DataSettings
from tests.agents.web.conftest import SignIn

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def olga(sign_in: SignIn, run: str) -> Client:
    """Sign in; the fixture's run has made the agent."""
    Run.objects.all().delete()
    return sign_in("olga")


def slug() -> str:
    return Agent.objects.get().slug


def test_files_come_with_their_message(olga: Client) -> None:
    form = {
        "agent": slug(),
        "message": "Look at these",
        "key": "k1",
        "files": [SimpleUploadedFile("d.csv", b"1"), SimpleUploadedFile("d.csv", b"22")],
    }
    for _ in range(2):  # sent twice, it is one run with one set of files
        for file in form["files"]:
            file.seek(0)
        assert olga.post("/", form).status_code == 302
    (run,) = Run.objects.all()
    assert Message.objects.get(run=run).text == "Look at these"
    assert run.has_uploads
    assert [upload.path for upload in run.uploads.all()] == [
        "/sandbox/user_uploads/d.csv",
        "/sandbox/user_uploads/d-2.csv",
    ]
    directory = DataSettings.now().workspaces / run.thread_id / "user_uploads"
    found = {path.name: path.read_bytes() for path in directory.iterdir()}
    assert found == {"d.csv": b"1", "d-2.csv": b"22"}


def test_too_many_files_start_no_run(olga: Client) -> None:
    threads = Thread.objects.count()
    form = {"agent": slug(), "message": "x", "key": "k"}
    with override_settings(VEL={**settings.VEL, "UPLOAD_BYTES": 100}):
        over = olga.post("/", {**form, "files": SimpleUploadedFile("a", b"x" * 101)})
        assert over.status_code == 400
        assert "100 bytes in all" in over.content.decode()
        huge = olga.post("/", {**form, "files": SimpleUploadedFile("a", b"x" * 5_100_000)})
        assert huge.status_code == 413
    assert (Run.objects.count(), Thread.objects.count()) == (0, threads)


def test_the_form_needs_its_csrf_token(olga: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = olga.cookies
    form = {"agent": slug(), "message": "x", "files": SimpleUploadedFile("a", b"x")}
    assert strict.post("/", form).status_code == 403
    assert not Run.objects.exists()


def test_a_follow_up_brings_its_files(olga: Client) -> None:
    olga.post("/", {"agent": slug(), "message": "Look", "key": "k1"})
    (first,) = Run.objects.all()
    Run.objects.update(status="completed")
    where = f"/runs/{first.pk}/messages/"
    file = SimpleUploadedFile("../<b>.csv", b"1")
    sent = olga.post(where, {"message": "And this?", "key": "k2", "files": [file]})
    follow_up = Run.objects.latest("number")
    assert sent["Location"] == f"/runs/{follow_up.pk}/"
    (upload,) = follow_up.uploads.all()
    assert (upload.thread_id, upload.original_name) == (first.thread_id, "<b>.csv")
    page = olga.get(sent["Location"]).content.decode()
    assert "&lt;b&gt;.csv" in page
    Run.objects.update(status="completed")
    bad = SimpleUploadedFile("a.pdf", b"MZ")
    refused = olga.post(where, {"message": "And this?", "key": "k3", "files": [bad]}, follow=True)
    assert "is not what its name says" in refused.content.decode()
    assert Run.objects.count() == 2


def test_a_follow_up_has_limits_and_needs_its_csrf_token(olga: Client) -> None:
    olga.post("/", {"agent": slug(), "message": "Look", "key": "k1"})
    (first,) = Run.objects.all()
    form = {"message": "x", "files": SimpleUploadedFile("a", b"x" * 5_100_000)}
    with override_settings(VEL={**settings.VEL, "UPLOAD_BYTES": 100}):
        assert olga.post(f"/runs/{first.pk}/messages/", form).status_code == 413
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = olga.cookies
    form = {"message": "x", "files": SimpleUploadedFile("a", b"x")}
    assert strict.post(f"/runs/{first.pk}/messages/", form).status_code == 403
    assert Run.objects.count() == 1
