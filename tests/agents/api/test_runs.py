"""Start, list, read and cancel runs over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from agents.models import IdempotencyKey, Message, Run, RunClock, Thread
from agents.states import RunStatus
from tests.agents.api.rows import (
    answer_run,
    ask_approval,
    client_for,
    make_agent,
    make_run,
    make_user,
    post,
    problem_of,
)

pytestmark = pytest.mark.django_db

RUNS = "/api/v1/runs"
BODY = {"agent": "writer", "message": "Write a poem"}


def test_a_message_becomes_a_queued_run() -> None:
    make_agent()
    ann = make_user("ann")
    response = post(client_for(ann), RUNS, BODY)
    assert response.status_code == 201
    run = Run.objects.get()
    assert response["Location"] == f"/api/v1/runs/{run.id}"
    assert response["Cache-Control"] == "no-store"
    shape = response.json()
    assert shape.pop("created_at").endswith("Z")
    assert shape == {
        "id": run.id,
        "thread": run.thread_id,
        "parent": None,
        "resumed_from": None,
        "depth": 0,
        "subagent": "",
        "children": 0,
        "agent": "writer",
        "provider": "scripted",
        "model": "demo",
        "scripted": True,
        "status": "queued",
        "wait_reason": "",
        "held": False,
        "waiting_for_space": None,
        "started_at": None,
        "ended_at": None,
        "finish_reason": "",
        "error": None,
        "usage": {
            "input_tokens": 0,
            "output_tokens": 0,
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
            "turns": 0,
        },
        "cost": "0.000000",
        "output": None,
        "structured_output": None,
        "source": "api",
        "started_by": {"kind": "person", "id": None, "name": None},
    }
    assert (run.owner, run.source) == (ann, "api")
    assert run.messages.get().text == "Write a poem"


def test_a_run_shows_its_answer_usage_and_cost() -> None:
    make_agent(provider="anthropic", model="some-model")
    ann = make_user("ann")
    run = make_run(ann)
    answer_run(run, "Roses are red.")
    RunClock.objects.filter(run=run).update(
        turn=1, input_tokens=10, output_tokens=4, cost_microusd=1234
    )
    shape = client_for(ann).get(f"{RUNS}/{run.id}").json()
    assert shape["output"] == "Roses are red."
    assert (shape["usage"]["turns"], shape["usage"]["input_tokens"]) == (1, 10)
    assert shape["cost"] == "0.001234"
    assert shape["scripted"] is False
    RunClock.objects.filter(run=run).update(cost_known=False)
    assert client_for(ann).get(f"{RUNS}/{run.id}").json()["cost"] is None


def test_a_failed_run_shows_its_error_and_no_answer() -> None:
    make_agent()
    ann = make_user("ann")
    run = make_run(ann)
    answer_run(run, "I will now …")
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.FAILED, error_code="max_turns", error_message="Too many turns."
    )
    shape = client_for(ann).get(f"{RUNS}/{run.id}").json()
    assert shape["error"] == {"code": "max_turns", "message": "Too many turns."}
    assert shape["output"] is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"agent": "writer"}, "message"),
        ({"message": "x"}, "agent"),
        ({**BODY, "message": 5}, "message"),
        ({**BODY, "message": None}, "message"),
        ({**BODY, "queue": "true"}, "queue"),
        ({**BODY, "thread": ["x"]}, "thread"),
        ({**BODY, "key": "k" * 201}, "key"),
        ({**BODY, "agent": "a" * 101}, "agent"),
        ({**BODY, "workspace_path": "/etc"}, "workspace_path"),
        ({**BODY, "executor": "mine"}, "executor"),
        ({**BODY, "source": "web"}, "source"),
        ([BODY], "body"),
        ("text", "body"),
    ],
)
def test_a_body_that_does_not_fit_is_refused_by_field(body: Any, field: str) -> None:
    make_agent()
    response = post(client_for(make_user("ann")), RUNS, body)
    document = problem_of(response)
    assert (response.status_code, document["code"]) == (400, "invalid")
    assert list(document["errors"]) == [field]
    assert field in document["detail"]
    assert not Run.objects.exists()


def test_an_agent_that_is_not_the_callers_is_not_found() -> None:
    make_agent("secret", everyone=False)
    response = post(client_for(make_user("bob")), RUNS, {"agent": "secret", "message": "x"})
    assert (response.status_code, problem_of(response)["code"]) == (404, "unknown_agent")


def test_a_message_continues_the_thread_that_it_names() -> None:
    make_agent()
    client = client_for(make_user("ann"))
    first = post(client, RUNS, {**BODY, "key": "my-session"}).json()
    answer_run(Run.objects.get(), "Done.")
    by_id = post(client, RUNS, {**BODY, "thread": first["thread"]}).json()
    answer_run(Run.objects.get(pk=by_id["id"]), "Done.")
    by_key = post(client, RUNS, {**BODY, "key": "my-session"}).json()
    assert first["thread"] == by_id["thread"] == by_key["thread"]
    assert Thread.objects.count() == 1


def test_a_busy_thread_is_a_conflict_unless_the_message_may_queue() -> None:
    make_agent()
    ann = make_user("ann")
    client = client_for(ann)
    thread = make_run(ann).thread_id
    busy = post(client, RUNS, {**BODY, "thread": thread})
    assert (busy.status_code, problem_of(busy)["code"]) == (409, "thread_busy")
    queued = post(client, RUNS, {**BODY, "thread": thread, "queue": True})
    assert (queued.status_code, queued.json()["status"]) == (201, "pending")


@pytest.mark.both_databases
def test_only_its_owner_writes_into_a_thread() -> None:
    make_agent()
    run = make_run(make_user("ann"), key="shared")
    answer_run(run, "Done.")
    client = client_for(make_user("bob"))
    response = post(client, RUNS, {**BODY, "thread": run.thread_id})
    assert (response.status_code, problem_of(response)["code"]) == (404, "unknown_thread")
    assert post(client, RUNS, {**BODY, "key": "shared"}).json()["thread"] != run.thread_id


def test_an_idempotency_key_makes_one_run() -> None:
    make_agent()
    client = client_for(make_user("ann"))
    first = post(client, RUNS, BODY, **{"Idempotency-Key": "k1"})
    again = post(client, RUNS, BODY, **{"Idempotency-Key": "k1"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert Run.objects.count() == 1


def test_an_idempotency_key_with_another_body_is_a_conflict() -> None:
    make_agent()
    client = client_for(make_user("ann"))
    post(client, RUNS, BODY, **{"Idempotency-Key": "k1"})
    other = post(client, RUNS, {**BODY, "message": "Other"}, **{"Idempotency-Key": "k1"})
    assert (other.status_code, problem_of(other)["code"]) == (409, "idempotency_mismatch")


def test_idempotency_keys_of_two_users_are_two_keys() -> None:
    make_agent()
    one = post(client_for(make_user("ann")), RUNS, BODY, **{"Idempotency-Key": "k1"})
    two = post(client_for(make_user("bob")), RUNS, BODY, **{"Idempotency-Key": "k1"})
    assert one.json()["id"] != two.json()["id"]
    assert IdempotencyKey.objects.count() == 2


@pytest.mark.parametrize("key", ["", "k" * 201, "a\x00b", "caf\xe9"])
def test_a_bad_idempotency_key_is_refused(key: str) -> None:
    make_agent()
    response = post(client_for(make_user("ann")), RUNS, BODY, **{"Idempotency-Key": key})
    assert (response.status_code, problem_of(response)["code"]) == (400, "invalid")
    assert not Run.objects.exists()


def test_runs_are_listed_newest_first_in_pages() -> None:
    make_agent()
    ann = make_user("ann")
    made = [make_run(ann).id for _ in range(5)]
    client = client_for(ann)
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        url = f"{RUNS}?limit=2" + (f"&cursor={cursor}" if cursor else "")
        page = client.get(url).json()
        assert len(page["results"]) <= 2
        seen += [run["id"] for run in page["results"]]
        cursor = page["next_cursor"]
    assert seen == sorted(made, reverse=True)


@pytest.mark.both_databases
def test_runs_are_filtered() -> None:
    make_agent()
    make_agent("painter")
    ann = make_user("ann")
    written, painted = make_run(ann), make_run(ann, agent="painter")
    answer_run(painted, "Done.")
    client = client_for(ann)

    def listed(query: str) -> list[str]:
        return [run["id"] for run in client.get(f"{RUNS}?{query}").json()["results"]]

    assert listed("status=completed") == [painted.id]
    assert listed("agent=writer") == [written.id]
    assert listed(f"thread={painted.thread_id}") == [painted.id]
    assert listed("agent=nobody") == []


@pytest.mark.parametrize(
    "query",
    ["status=done", "limit=0", "limit=201", "limit=x", "cursor=a%00b", "agnet=x", "agent=%00",
     "cursor=", "status=queued&status=running", "thread=%00"],
)  # fmt: skip
def test_a_query_that_does_not_fit_is_refused(query: str) -> None:
    response = client_for(make_user("ann")).get(f"{RUNS}?{query}")
    assert response.status_code == 400
    assert list(problem_of(response)["errors"]) == [query.split("=")[0]]


def test_a_list_of_runs_takes_a_fixed_number_of_queries(django_assert_max_num_queries: Any) -> None:
    make_agent()
    ann = make_user("ann")
    for _ in range(4):
        answer_run(make_run(ann), "Done.")
    client = client_for(ann)
    with django_assert_max_num_queries(5):  # the token, its use, permissions (2), runs
        assert len(client.get(RUNS).json()["results"]) == 4


def test_runs_of_others_cannot_be_seen_or_cancelled() -> None:
    make_agent()
    run = make_run(make_user("ann"))
    client = client_for(make_user("bob"))
    assert client.get(RUNS).json()["results"] == []
    for response in (
        client.get(f"{RUNS}/{run.id}"),
        client.get(f"{RUNS}/{run.id}/events"),
        post(client, f"{RUNS}/{run.id}/cancel", {}),
    ):
        assert (response.status_code, problem_of(response)["code"]) == (404, "not_found")
    run.refresh_from_db()
    assert run.status == RunStatus.QUEUED


def test_hidden_and_missing_objects_look_the_same() -> None:
    make_agent()
    run = make_run(make_user("ann"))
    client = client_for(make_user("bob"))
    hidden = client.get(f"{RUNS}/{run.id}").content.decode()
    missing = client.get(f"{RUNS}/{'0' * 26}").content.decode()
    assert hidden.replace(run.id, "0" * 26) == missing


def test_the_owner_cancels() -> None:
    make_agent()
    ann = make_user("ann")
    request = ask_approval(make_run(ann))
    response = post(client_for(ann), f"{RUNS}/{request.run_id}/cancel", {"reason": "too slow"})
    assert (response.status_code, response.json()["status"]) == (200, "cancelled")
    request.refresh_from_db()
    assert request.status == "cancelled"


def test_cancelling_needs_no_body_and_can_be_repeated() -> None:
    make_agent()
    ann = make_user("ann")
    url = f"{RUNS}/{make_run(ann).id}/cancel"
    client = client_for(ann)
    assert client.post(url).json()["status"] == "cancelled"
    assert client.post(url).status_code == 200


def test_messages_of_a_run_need_the_scope_read() -> None:
    make_agent()
    ann = make_user("ann")
    run = make_run(ann)
    answer_run(run, "The secret.")
    url = f"{RUNS}/{run.id}/cancel"
    assert client_for(ann, "run").post(url).json()["output"] is None
    assert client_for(ann, "run", "read").post(url).json()["output"] == "The secret."


@pytest.mark.parametrize("permission", ["view_all_runs", "approve_toolcall"])
def test_a_watcher_of_a_run_cannot_cancel_it(permission: str) -> None:
    make_agent()
    run = make_run(make_user("ann"))
    ask_approval(run)
    response = post(client_for(make_user("eve", permission)), f"{RUNS}/{run.id}/cancel", {})
    assert (response.status_code, problem_of(response)["code"]) == (403, "not_allowed")
    run.refresh_from_db()
    assert run.status == RunStatus.WAITING


def test_a_superuser_cancels_any_run() -> None:
    make_agent()
    run = make_run(make_user("ann"))
    client = client_for(make_user("root", superuser=True))
    assert post(client, f"{RUNS}/{run.id}/cancel", {}).json()["status"] == "cancelled"


def test_view_all_runs_reads_any_run_but_lists_only_own_ones() -> None:
    make_agent()
    run = make_run(make_user("ann"))
    client = client_for(make_user("eve", "view_all_runs"))
    assert client.get(f"{RUNS}/{run.id}").status_code == 200
    assert client.get(RUNS).json()["results"] == []


def test_a_message_that_is_too_long_stores_nothing() -> None:
    make_agent()
    client = client_for(make_user("ann"))
    huge = post(client, RUNS, {**BODY, "message": "x" * 10_000_000})
    assert (huge.status_code, problem_of(huge)["code"]) == (413, "body_too_large")
    long = post(client, RUNS, {**BODY, "message": "x" * 1_000_001})
    assert (long.status_code, problem_of(long)["code"]) == (400, "message_too_long")
    assert not Run.objects.exists()
    assert not Message.objects.exists()
