"""The same request from two connections at the same time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from agents.models import Run, Thread
from agents.services.tokens import create_token
from tests.agents.api.rows import (
    HttpResponse,
    ask_approval,
    client_with,
    make_agent,
    make_run,
    make_user,
    post,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

ROUNDS = 5


def twice_at_once(request: Callable[[], HttpResponse]) -> list[HttpResponse]:
    """Send the request from two threads, each with its own connection."""
    start = Barrier(2)

    def one(_: int) -> HttpResponse:
        try:
            start.wait()
            return request()
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(one, range(2)))


def test_two_requests_with_one_idempotency_key_make_one_run() -> None:
    make_agent()
    _, secret = create_token(make_user("ann"))
    body = {"agent": "writer", "message": "Hello"}
    for attempt in range(ROUNDS):
        answers = twice_at_once(
            lambda key=f"key-{attempt}": post(
                client_with(secret), "/api/v1/runs", body, **{"Idempotency-Key": key}
            )
        )
        assert sorted(answer.status_code for answer in answers) == [201, 201]
        assert sorted("Idempotency-Replayed" in answer for answer in answers) == [False, True]
        assert answers[0].content == answers[1].content
    assert Run.objects.count() == Thread.objects.count() == ROUNDS


def test_of_two_decisions_one_is_taken() -> None:
    make_agent()
    ann = make_user("ann")
    _, secret = create_token(ann, scopes=["approve"])
    for _ in range(ROUNDS):
        request = ask_approval(make_run(ann))
        body = {"decision": "reject", "digest": request.digest}
        answers = twice_at_once(
            lambda url=f"/api/v1/approvals/{request.id}/decide", body=body: post(
                client_with(secret), url, body
            )
        )
        assert sorted(answer.status_code for answer in answers) == [200, 409]


def test_of_two_messages_to_one_thread_one_is_taken() -> None:
    make_agent()
    _, secret = create_token(make_user("ann"))
    for attempt in range(ROUNDS):
        body = {"agent": "writer", "message": "Hello", "key": f"session-{attempt}"}
        answers = twice_at_once(lambda body=body: post(client_with(secret), "/api/v1/runs", body))
        assert sorted(answer.status_code for answer in answers) == [201, 409]
    assert Run.objects.count() == Thread.objects.count() == ROUNDS
