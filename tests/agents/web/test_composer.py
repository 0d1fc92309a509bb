"""The composer: follow-ups for scripts and for plain forms, names of files, and another attempt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings

from agents.models import Run, RunEvent, Upload
from agents.settings import DataSettings
from tests.agents.web.conftest import SignIn
from tests.support import site_writer

pytestmark = pytest.mark.django_db(transaction=True)

JSON = "application/json"


@pytest.fixture
def olga(sign_in: SignIn) -> Client:
    return sign_in("olga")


@pytest.fixture
def files(run: str) -> Path:
    """Return the directory of the thread's files."""
    root = DataSettings.now().workspaces / site_writer.run(run)["thread"]
    for area in ("outputs", "workspace"):
        (root / area).mkdir(parents=True)
    return root


def send(client: Client, run: str, accept: str = JSON, **fields: Any) -> Any:
    form = {"message": "More", "key": "k", **fields}
    return client.post(f"/runs/{run}/messages/", form, headers={"accept": accept})


def names(client: Client, run: str, words: str) -> list[str]:
    answer = client.get(f"/runs/{run}/names/", {"q": words})
    assert answer.status_code == 200
    return list(answer.json()["paths"])


def test_a_script_gets_the_address_of_the_new_run(run: str, olga: Client) -> None:
    Run.objects.update(status="completed")
    answer = send(olga, run)
    assert answer.json() == {"url": f"/runs/{site_writer.newest_run()}/", "is_queued": False}
    assert send(olga, run).json()["url"] == answer.json()["url"]
    assert Run.objects.count() == 2


def test_a_message_to_a_busy_run_is_queued_and_can_be_removed(run: str, olga: Client) -> None:
    assert send(olga, run).json() == {"url": f"/runs/{run}/", "is_queued": True}
    following = site_writer.newest_run()
    answer = olga.post(f"/runs/{following}/cancel/", headers={"accept": JSON})
    assert (answer.status_code, answer.json()) == (200, {"message": ""})
    assert site_writer.run(following)["status"] == "cancelled"
    assert site_writer.run(run)["status"] == "queued"


def test_the_problem_of_a_file_is_with_its_file(run: str, olga: Client) -> None:
    limited = {**settings.VEL, "UPLOAD_TYPES": ("text",), "UPLOAD_BYTES": 50}
    with override_settings(VEL=limited):
        good, zipped = SimpleUploadedFile("a.txt", b"x"), SimpleUploadedFile("b.zip", b"PK\3\4")
        answer = send(olga, run, files=[good, zipped, SimpleUploadedFile("c.txt", b"y" * 51)])
    assert answer.status_code == 400
    [first, second, third] = answer.json()["files"]
    assert first == ""
    assert "'b.zip'" in second
    assert "50 bytes" in third
    assert answer.json()["message"]
    assert not Upload.objects.exists()
    assert Run.objects.count() == 1


def test_the_home_page_reports_the_same(run: str, olga: Client) -> None:
    Run.objects.all().delete()
    form = {"agent": "assistant", "message": "Hi", "key": "k"}
    with override_settings(VEL={**settings.VEL, "UPLOAD_TYPES": ("text",)}):
        file = SimpleUploadedFile("b.zip", b"PK\3\4")
        refused = olga.post("/", {**form, "files": file}, headers={"accept": JSON})
    assert refused.status_code == 400
    assert "'b.zip'" in refused.json()["files"][0]
    answer = olga.post("/", form, headers={"accept": JSON})
    assert answer.json()["url"] == f"/runs/{Run.objects.get().pk}/"


def test_without_a_script_the_page_keeps_a_refused_message(run: str, olga: Client) -> None:
    with override_settings(VEL={**settings.VEL, "UPLOAD_TYPES": ("text",)}):
        file = SimpleUploadedFile("b.zip", b"PK\3\4")
        answer = send(olga, run, "text/html", message="Keep </textarea><b>this", files=[file])
    html = answer.content.decode()
    assert answer.status_code == 400
    assert "Keep &lt;/textarea&gt;&lt;b&gt;this</textarea>" in html
    assert "&#x27;b.zip&#x27;" in html


def test_a_failed_run_continues_when_its_owner_retries_it(
    run: str, olga: Client, sign_in: SignIn
) -> None:
    site_writer.end(run, "failed", [])
    assert 'id="retry"' in olga.get(f"/runs/{run}/").content.decode()
    assert sign_in("peter").post(f"/runs/{run}/retry/").status_code == 404
    answer = olga.post(f"/runs/{run}/retry/")
    assert answer["Location"] == f"/runs/{run}/"
    assert site_writer.run(run)["status"] == "queued"
    assert RunEvent.objects.filter(run=run, type="run.resumed").count() == 1


def test_a_run_that_cannot_be_retried_says_why(run: str, olga: Client) -> None:
    Run.objects.update(status="completed")
    html = olga.post(f"/runs/{run}/retry/", follow=True).content.decode()
    assert "The run is completed" in html
    assert 'id="retry" method="post"' in html
    assert site_writer.run(run)["status"] == "completed"


def test_names_of_files_match_any_part_of_the_path(run: str, files: Path, olga: Client) -> None:
    (files / "outputs" / "a report.md").write_text("x")
    (files / "workspace" / "deep").mkdir()
    (files / "workspace" / "deep" / "Report.csv").write_text("x")
    (files / "workspace" / "other.txt").write_text("x")
    assert names(olga, run, "report") == [
        "/sandbox/workspace/deep/Report.csv",
        "/sandbox/outputs/a report.md",
    ]
    assert names(olga, run, "workspace/deep/") == ["/sandbox/workspace/deep/Report.csv"]
    assert len(names(olga, run, "")) == 3
    assert names(olga, run, "nosuch\0") == []


def test_names_show_hidden_characters_and_never_lead_outside(
    run: str, files: Path, olga: Client, tmp_path: Path
) -> None:
    for name in ("evil\u202ecsv.exe", 'quo"te.txt', "line\nbreak.txt", "good.txt"):
        (files / "workspace" / name).write_text("x")
    (tmp_path / "secret.txt").write_text("x")
    (files / "workspace" / "link").symlink_to(tmp_path)
    assert names(olga, run, "") == [
        "/sandbox/workspace/good.txt",
        "/sandbox/workspace/evil\\u202ecsv.exe",
        "/sandbox/workspace/line\\u000abreak.txt",
    ]
    assert names(olga, run, "../") == []


def test_more_names_than_a_list_has_are_cut(run: str, files: Path, olga: Client) -> None:
    for number in range(20):
        (files / "workspace" / f"{number}.txt").write_text("x")
    answer = olga.get(f"/runs/{run}/names/", {"q": "1"}).json()
    assert len(answer["paths"]) == 11
    assert answer["is_cut"] is False
    answer = olga.get(f"/runs/{run}/names/").json()
    assert (len(answer["paths"]), answer["is_cut"]) == (12, True)


def test_other_people_get_no_names(run: str, files: Path, sign_in: SignIn) -> None:
    (files / "workspace" / "secret.txt").write_text("x")
    site_writer.ask(run, "send", {})
    for person in (sign_in("peter"), sign_in("ada", approver=True)):
        assert person.get(f"/runs/{run}/names/").status_code == 404


def test_a_run_without_files_has_no_names(run: str, olga: Client) -> None:
    assert names(olga, run, "") == []
