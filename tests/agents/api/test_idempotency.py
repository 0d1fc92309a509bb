"""A create request that is sent again, also by another process at the same time."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.utils import timezone

from agents.models import IdempotencyKey, Run, Thread
from agents.services.errors import Conflict
from agents.services.idempotency import Keyed, carry_out_once, known_answer
from agents.services.runs.start import RunRequest, create_run
from agents.services.tokens import create_token
from skills_app.models import Skill
from tests.agents.api.rows import (
    ALL_SCOPES,
    answer_run,
    client_for,
    client_with,
    make_agent,
    make_run,
    make_user,
    post,
    problem_of,
)

KEY = {"Idempotency-Key": "k-1"}
RUNS = "/api/v1/runs"
BODY = {"agent": "writer", "message": "Hello"}


@pytest.mark.django_db
def test_a_repeat_gets_the_same_answer() -> None:
    make_agent()
    client = client_for(make_user("ann"))
    first = post(client, RUNS, BODY, **KEY)
    answer_run(Run.objects.get(), "Done.")
    again = post(client, RUNS, {"message": "Hello", "agent": "writer"}, **KEY)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again["Location"] == first["Location"]
    assert "Idempotency-Replayed" not in first
    assert again["Idempotency-Replayed"] == "true"
    assert Run.objects.count() == 1


@pytest.mark.django_db
def test_a_key_belongs_to_one_request() -> None:
    make_agent()
    ann = make_user("ann")
    client = client_for(ann)
    run = make_run(ann)
    answer_run(run, "Done.")
    post(client, RUNS, BODY, **KEY)
    for url, body in (
        (RUNS, {**BODY, "queue": True}),
        (f"/api/v1/runs/{run.id}/fork", {}),
        (f"/api/v1/runs/{run.id}/resume", BODY),
    ):
        response = post(client, url, body, **KEY)
        assert (response.status_code, problem_of(response)["code"]) in (
            (409, "idempotency_mismatch"),
            (400, "invalid"),  # a body for another endpoint
        )
    assert Run.objects.count() == 2


@pytest.mark.django_db
def test_a_message_from_a_page_has_a_key_and_no_answer() -> None:
    make_agent()
    ann = make_user("ann")
    made = create_run(RunRequest(agent="writer", message="Hello"), owner=ann, idempotency_key="k-1")
    asked = Keyed(ann, "k-1", "0" * 64)
    # Even for the same request, there is no stored answer.
    IdempotencyKey.objects.update(body_hash=asked.digest)
    with pytest.raises(Conflict):
        known_answer(asked)
    with pytest.raises(Conflict):
        carry_out_once(asked, lambda: pytest.fail("done a second time"))
    assert Run.objects.get() == made.run
    assert post(client_for(ann), RUNS, BODY, **KEY).status_code == 409


@pytest.mark.django_db
def test_a_refused_request_uses_no_key() -> None:
    client = client_for(make_user("ann"))
    assert post(client, RUNS, BODY, **KEY).status_code == 404
    make_agent()
    assert post(client, RUNS, BODY, **KEY).status_code == 201


@pytest.mark.django_db
def test_keys_are_forgotten_after_a_month() -> None:
    make_agent()
    ann = make_user("ann")
    post(client_for(ann), RUNS, BODY, **KEY)
    long_ago = timezone.now() - timedelta(days=31)
    IdempotencyKey.objects.update(created_at=long_ago)
    post(client_for(ann), RUNS, BODY, **{"Idempotency-Key": "k-2"})
    assert list(IdempotencyKey.objects.values_list("key", flat=True)) == ["k-2"]


@pytest.mark.django_db
def test_a_stolen_key_shows_a_stranger_nothing() -> None:
    make_agent()
    post(client_for(make_user("ann")), RUNS, BODY, **KEY)
    bob = make_user("bob")
    answer = post(client_for(bob), RUNS, BODY, **KEY).content
    assert Run.objects.get(owner=bob).pk.encode() in answer
    # Neither does a token without the scope to start runs.
    ann = Run.objects.exclude(owner=bob).get().owner
    response = post(client_for(ann, "read"), RUNS, BODY, **KEY)
    assert problem_of(response)["code"] == "insufficient_scope"


@pytest.mark.django_db
def test_files_are_part_of_the_request() -> None:
    make_agent(sandbox=False)
    ann = make_user("ann")
    thread = make_run(ann).thread_id

    def send(content: bytes, name: str = "a.txt") -> Any:
        return client_for(ann).post(
            f"/api/v1/threads/{thread}/files",
            {"file": SimpleUploadedFile(name, content)},
            headers=KEY,
        )

    first, again = send(b"one"), send(b"one")
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert problem_of(send(b"two"))["code"] == "idempotency_mismatch"
    assert problem_of(send(b"one", "b.txt"))["code"] == "idempotency_mismatch"


@pytest.mark.django_db
def test_skills_are_made_once() -> None:
    agent = make_agent()
    client = client_for(make_user("ann", superuser=True))
    body = {"name": "notes", "description": "Takes notes.", "instructions": "# Notes"}
    url = f"/api/v1/agents/{agent.pk}/skills"
    first, again = post(client, url, body, **KEY), post(client, url, body, **KEY)
    assert (first.status_code, first.content) == (201, again.content)
    assert Skill.objects.filter(agent=agent).count() == 1


def in_processes(work: Callable[[], Any], count: int = 2) -> list[Any]:
    """Return the results of `work` from `count` processes that start together."""
    context = multiprocessing.get_context("fork")
    start, answers = context.Barrier(count), context.SimpleQueue()
    connection.close()  # processes must not share a connection

    def one() -> None:
        start.wait()
        try:
            answers.put(work())
        except BaseException as error:
            answers.put(repr(error))
            raise
        finally:
            connection.close()

    processes = [context.Process(target=one) for _ in range(count)]
    for process in processes:
        process.start()
    found = [answers.get() for _ in processes]
    for process in processes:
        process.join()
    return found


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_of_two_processes_one_creates_the_run() -> None:
    make_agent()
    _, secret = create_token(make_user("ann"), scopes=ALL_SCOPES)
    for attempt in range(4):
        key = {"Idempotency-Key": f"key-{attempt}"}

        def send(key: dict[str, str] = key) -> tuple[int, bytes, bool]:
            response = post(client_with(secret), RUNS, BODY, **key)
            return response.status_code, response.content, "Idempotency-Replayed" in response

        one, two = in_processes(send)
        assert one[:2] == two[:2]
        assert one[0] == 201
        assert {one[2], two[2]} == {False, True}
    assert Run.objects.count() == Thread.objects.count() == 4
    other = post(client_with(secret), RUNS, {**BODY, "message": "Other"}, **KEY | key)
    assert problem_of(other)["code"] == "idempotency_mismatch"


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_of_two_processes_one_creates_the_fork() -> None:
    make_agent(sandbox=False)
    ann = make_user("ann")
    run = make_run(ann)
    answer_run(run, "Done.")
    _, secret = create_token(ann, scopes=ALL_SCOPES)
    for attempt in range(3):
        key = {"Idempotency-Key": f"key-{attempt}"}

        def send(key: dict[str, str] = key) -> tuple[int, bytes]:
            response = post(client_with(secret), f"{RUNS}/{run.id}/fork", {}, **key)
            return response.status_code, response.content

        one, two = in_processes(send)
        assert one == two
        assert one[0] == 201
    assert Thread.objects.count() == 4


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["", "x" * 201, "caf\xe9", "a\tb"])
def test_a_key_is_a_short_line_of_ascii(key: str) -> None:
    make_agent()
    response = post(client_for(make_user("ann")), RUNS, BODY, **{"Idempotency-Key": key})
    assert response.status_code == 400
    assert "printable ASCII" in problem_of(response)["detail"]
    assert not Run.objects.exists()


@pytest.mark.django_db
def test_old_keys_of_others_are_left_alone() -> None:
    make_agent()
    post(client_for(make_user("ann")), RUNS, BODY, **KEY)
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(days=31))
    post(client_for(make_user("bob")), RUNS, BODY, **KEY)
    assert IdempotencyKey.objects.count() == 2


@pytest.mark.django_db
def test_form_fields_next_to_files_are_part_of_the_request() -> None:
    make_agent(sandbox=False)
    client = client_for(make_user("ann"))

    def send(message: str) -> Any:
        body = {**BODY, "message": message, "file": SimpleUploadedFile("a.txt", b"x")}
        return client.post(RUNS, body, headers=KEY)

    assert send("Hello").status_code == 201
    assert problem_of(send("Other"))["code"] == "idempotency_mismatch"
