"""Uploads over REST: only for the user's own threads, with a message or before the next one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings

from agents.models import Message, Run, Thread, Upload
from tests.agents.api.rows import (
    answer_run,
    client_for,
    make_agent,
    make_run,
    make_user,
    problem_of,
)
from tests.support.documents import docx

pytestmark = pytest.mark.django_db(transaction=True)

RUNS = "/api/v1/runs"


@pytest.fixture
def run() -> Run:
    """Return a finished run of ann's."""
    make_agent()
    run = make_run(make_user("ann"))
    answer_run(run, "Done.")
    return run


def url(run: Run, upload: str = "") -> str:
    return f"/api/v1/threads/{run.thread_id}/uploads" + (f"/{upload}" if upload else "")


def file(name: str = "a.txt", data: bytes = b"hello") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, data)


def send(client: Any, run: Run, *files: SimpleUploadedFile, **more: Any) -> Any:
    return client.post(url(run), {"file": list(files), **more}, format="multipart")


def start(client: Any, *files: SimpleUploadedFile, **fields: Any) -> Any:
    headers = {"HTTP_IDEMPOTENCY_KEY": key} if (key := fields.pop("key_header", "")) else {}
    body = {"agent": "writer", "message": "Look", "file": list(files), **fields}
    return client.post(RUNS, body, format="multipart", **headers)


@pytest.mark.slow
@pytest.mark.both_databases
def test_uploads_are_stored_listed_and_deleted(run: Run) -> None:
    client = client_for(run.owner)
    answer = send(client, run, file("../Bericht.docx", docx("x")), file())
    assert answer.status_code == 201
    document, text = answer.json()["results"]
    assert document == {
        "id": document["id"],
        "path": "/sandbox/user_uploads/Bericht.docx",
        "name": "Bericht.docx",
        "size": len(docx("x")),
        "media_type": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "run": None,
        "markdown": None,
        "note": "",
        "created_at": document["created_at"],
    }
    assert client.get(url(run)).json()["results"] == [document, text]
    assert client.delete(url(run, text["id"])).status_code == 204
    assert client.get(url(run)).json()["results"] == [document]
    assert problem_of(client.delete(url(run, text["id"])))["code"] == "unknown_upload"
    make_run(run.owner, thread=run.thread_id)  # the next message lists it
    told = client.get(url(run)).json()["results"][0]["run"]
    assert told == Run.objects.latest("number").pk
    assert problem_of(client.delete(url(run, document["id"])))["code"] == "thread_busy"


def test_a_run_starts_with_its_files(run: Run) -> None:
    client = client_for(run.owner)
    answer = start(client, file(), file("b.csv", b"1,2"), thread=run.thread_id, key_header="k")
    assert answer.status_code == 201
    made = Run.objects.get(pk=answer.json()["id"])
    assert (made.thread_id, made.has_uploads) == (run.thread_id, True)
    assert Message.objects.get(run=made).text == "Look"
    assert sorted(made.uploads.values_list("name", flat=True)) == ["a.txt", "b.csv"]
    again = start(client, file(), file("b.csv", b"1,2"), thread=run.thread_id, key_header="k")
    assert (again.json()["id"], again["Idempotency-Replayed"]) == (made.pk, "true")
    other = start(client, file(), file("b.csv", b"9"), thread=run.thread_id, key_header="k")
    assert problem_of(other)["code"] == "idempotency_mismatch"
    assert Upload.objects.count() == 2


def test_fields_that_are_not_text_are_json_in_a_form(run: Run) -> None:
    client = client_for(run.owner)
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    answer = start(client, file(), queue="true", output_schema=json.dumps(schema))
    assert answer.status_code == 201
    assert Run.objects.get(pk=answer.json()["id"]).output_schema == schema
    for wrong in ({"queue": "yes"}, {"queue": "1"}, {"context": "[1"}, {"context": '"\\u0000"'}):
        assert start(client, file(), **wrong).status_code == 400
    assert start(client, file(), unknown="x").status_code == 400
    assert start(client, message="   ").status_code == 400
    hidden = {"agent": ["writer", file("agent.txt")], "message": "x"}
    assert client.post(RUNS, hidden, format="multipart").status_code == 400
    other = client.post(
        RUNS, {"agent": "writer", "message": "x", "other": file()}, format="multipart"
    )
    assert other.status_code == 400


def test_json_stays_as_it_is(run: Run) -> None:
    client = client_for(run.owner)
    body = json.dumps({"agent": "writer", "message": "Hello"})
    answer = client.post(RUNS, body, content_type="application/json")
    assert (answer.status_code, answer.json()["status"]) == (201, "queued")
    assert client.post(RUNS, "agent=writer", content_type="text/plain").status_code == 415


def test_the_uploads_of_others_are_not_there(run: Run) -> None:
    upload = send(client_for(run.owner), run, file()).json()["results"][0]["id"]
    for stranger in (make_user("bob", "view_all_runs"), make_user("root", superuser=True)):
        client = client_for(stranger)
        for answer in (
            client.get(url(run)),
            send(client, run, file("evil.txt")),
            client.delete(url(run, upload)),
            start(client, file("evil.txt"), thread=run.thread_id),
        ):
            assert problem_of(answer)["code"] == "unknown_thread"
        # An own thread does not give access to uploads of other threads.
        own = make_run(stranger)
        answer_run(own, "Done.")
        assert problem_of(client.delete(url(own, upload)))["code"] == "unknown_upload"
    assert Upload.objects.get().name == "a.txt"


def test_uploads_need_their_scopes(run: Run) -> None:
    reader, starter = client_for(run.owner, "read"), client_for(run.owner, "run")
    assert send(reader, run, file()).status_code == 403
    assert start(reader, file()).status_code == 403
    upload = send(starter, run, file()).json()["results"][0]["id"]
    assert starter.get(url(run)).status_code == 403
    assert reader.delete(url(run, upload)).status_code == 403
    assert starter.delete(url(run, upload)).status_code == 204


def test_a_session_needs_its_csrf_token(run: Run) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(run.owner)
    assert client.post(url(run), {"file": file()}).status_code == 403
    assert client.post(RUNS, {"agent": "writer", "message": "x", "file": file()}).status_code == 403
    assert not Upload.objects.exists()


def test_too_large_uploads_are_refused_before_reading(run: Run) -> None:
    client = client_for(run.owner)
    threads = Thread.objects.count()
    with override_settings(VEL={**settings.VEL, "UPLOAD_BYTES": 100}):
        huge = b"x" * 5_100_000
        for answer in (send(client, run, file(data=huge)), start(client, file(data=huge))):
            assert (answer.status_code, problem_of(answer)["code"]) == (413, "body_too_large")
        over = start(client, file("a.txt", b"x" * 101))
        assert problem_of(over)["code"] == "upload_too_large"
    assert send(client, run, file(), unknown="x").status_code == 400
    many = [file(f"{n}.txt") for n in range(120)]
    assert send(client, run, *many).status_code == 400
    assert problem_of(send(client, run, file("a.exe", b"MZ\0")))["code"] == "upload_type"
    assert (Thread.objects.count(), Upload.objects.count()) == (threads, 0)
