"""Pages, orders and filters: the same for every list."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from agents.models import Run, Thread
from agents.states import RunStatus
from tests.agents.api.rows import (
    answer_run,
    ask_approval,
    client_for,
    make_agent,
    make_run,
    make_user,
    problem_of,
)

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

LISTS = ("agents", "runs", "threads", "approvals", "grants", "databases")


def pages(client: APIClient, url: str, limit: int = 2) -> list[list[dict[str, Any]]]:
    """Return every page of a list."""
    found, mark = [], "&" if "?" in url else "?"
    cursor = ""
    while True:
        response = client.get(f"/api/v1/{url}{mark}limit={limit}{cursor}")
        assert response.status_code == 200, response.json()
        found.append(response.json()["results"])
        if response.json()["next_cursor"] is None:
            return found
        cursor = f"&cursor={response.json()['next_cursor']}"


def names(found: list[list[dict[str, Any]]], field: str = "id") -> list[Any]:
    return [row[field] for page in found for row in page]


@pytest.fixture
def ann() -> User:
    make_agent()
    return make_user("ann")


@pytest.mark.slow
def test_pages_hold_every_row_once_in_either_order(ann: User) -> None:
    asked = [ask_approval(make_run(ann)) for _ in range(5)]
    client = client_for(ann)
    for url, ids in (
        ("runs", sorted(request.run_id for request in asked)),
        ("approvals", sorted(request.id for request in asked)),
    ):
        found = pages(client, f"{url}?ordering=created_at")
        assert [len(page) for page in found] == [2, 2, 1]
        assert names(found) == ids
        assert names(pages(client, f"{url}?ordering=-created_at")) == ids[::-1]


def test_new_rows_do_not_shift_pages(ann: User) -> None:
    made = [make_run(ann).id for _ in range(4)]
    client = client_for(ann)
    first = client.get("/api/v1/runs?limit=2").json()
    make_run(ann)
    second = client.get(f"/api/v1/runs?limit=2&cursor={first['next_cursor']}").json()
    assert names([first["results"], second["results"]]) == sorted(made, reverse=True)


@pytest.mark.slow
def test_equal_titles_are_ordered_by_their_ids(ann: User) -> None:
    for number in range(5):
        make_run(ann, message="Same" if number < 4 else "Another")
    found = pages(client_for(ann), "threads?ordering=title")
    assert names(found, "title") == ["Another", *["Same"] * 4]
    assert len(set(names(found))) == 5
    assert names(pages(client_for(ann), "threads?ordering=-title")) == names(found)[::-1]


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", LISTS)
def test_unknown_parameters_are_refused_with_the_known_ones(ann: User, name: str) -> None:
    client = client_for(ann)
    for query, told in (
        ("colour=red", "known are: cursor, limit"),
        ("ordering=colour", "is not a valid choice"),
        ("limit=0", "greater than or equal to 1"),
        ("limit=201", "less than or equal to 200"),
        ("limit=2&limit=3", "more than once"),
        ("cursor=x", "Invalid cursor"),
    ):
        response = client.get(f"/api/v1/{name}?{query}")
        assert response.status_code == 400, query
        assert told in json.dumps(problem_of(response)), query


def cursor_of(*parts: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "parts",
    [
        (),
        ("-id",),
        ("-id", None, "x"),
        ("-id", ["x"], "x"),
        ("-id", {"a": 1}, "x"),
        ("-id", True, "x"),
        ("-id", "a\x00", "a\x00"),
        ("-id", "a", 2**80),
        ("id", "a", "a"),
        ("-owner__password", "a", "a"),
    ],
)
def test_a_cursor_that_no_list_gave_is_refused(ann: User, parts: tuple[Any, ...]) -> None:
    response = client_for(ann).get(f"/api/v1/runs?cursor={cursor_of(*parts)}")
    assert response.status_code == 400
    assert "cursor" in problem_of(response)["detail"]


def test_a_cursor_of_a_thousand_lists_or_without_end_is_refused(ann: User) -> None:
    client = client_for(ann)
    deep = base64.urlsafe_b64encode(b"[" * 1_100).decode().rstrip("=")
    response = client.get(f"/api/v1/runs?cursor={deep}")
    assert (response.status_code, problem_of(response)["code"]) == (400, "invalid")
    long = client.get(f"/api/v1/runs?cursor={cursor_of('-id', 'z' * 2_000, 'z')}")
    assert list(problem_of(long)["errors"]) == ["cursor"]


def test_a_cursor_of_another_order_or_made_up_shows_no_strangers_rows(ann: User) -> None:
    make_run(make_user("bob"))
    mine = make_run(ann)
    forged = cursor_of("-id", "z" * 26, "z" * 26)
    listed = client_for(ann).get(f"/api/v1/runs?cursor={forged}").json()["results"]
    assert [run["id"] for run in listed] == [mine.id]
    make_run(ann)
    other = client_for(ann).get("/api/v1/runs?limit=1").json()["next_cursor"]
    response = client_for(ann).get(f"/api/v1/runs?ordering=created_at&cursor={other}")
    assert response.status_code == 400


def test_times_limit_lists(ann: User) -> None:
    runs = [make_run(ann) for _ in range(3)]
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for number, run in enumerate(runs):
        moment = start + timedelta(days=number)
        Run.objects.filter(pk=run.pk).update(created_at=moment)
        Thread.objects.filter(pk=run.thread_id).update(created_at=moment)
    client = client_for(ann)
    for name in ("runs", "threads"):
        after = client.get(f"/api/v1/{name}?created_after=2026-01-01T00:00:00Z").json()["results"]
        assert len(after) == 2
        both = "created_after=2026-01-01T00:00&created_before=2026-01-03T00:00:00Z"
        assert len(client.get(f"/api/v1/{name}?{both}").json()["results"]) == 1
        wrong = "created_after=2026-01-03T00:00Z&created_before=2026-01-01T00:00Z"
        problem = problem_of(client.get(f"/api/v1/{name}?{wrong}"))
        assert list(problem["errors"]) == ["created_before"]


def test_threads_by_agent_key_and_status(ann: User) -> None:
    make_agent("other")
    mine = make_run(ann, key="k")
    answer_run(mine, "Done.")
    make_run(ann, agent="other")
    client = client_for(ann)
    for query in ("agent=writer", "key=k", "status=completed"):
        (thread,) = client.get(f"/api/v1/threads?{query}").json()["results"]
        assert thread["id"] == mine.thread_id
    assert client.get("/api/v1/threads?status=asleep").status_code == 400


def test_a_filter_looks_through_a_part_of_the_list_on_each_page(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.doors.rest.pagination.LOOKED_THROUGH", 3)
    made = [make_run(ann) for _ in range(10)]
    failed = [made[0], made[5], made[6], made[9]]
    Run.objects.filter(pk__in=[run.pk for run in failed]).update(status=RunStatus.FAILED)
    client = client_for(ann)
    for path, ids in (
        ("runs", [run.pk for run in failed]),
        ("threads", [run.thread_id for run in failed]),
    ):
        found = pages(client, f"{path}?status=failed&ordering=created_at", limit=9)
        assert (names(found), [len(page) for page in found]) == (ids, [1, 1, 1, 1])
        found = pages(client, f"{path}?status=failed", limit=9)
        assert (names(found), [len(page) for page in found]) == (ids[::-1], [1, 2, 0, 1])
        # With a smaller page size, each page shows the matches so far before the search continues.
        assert names(pages(client, f"{path}?status=failed", limit=1)) == ids[::-1]
    # An index finds these: all are on one page.
    assert names(pages(client, f"runs?thread={made[0].thread_id}", limit=9)[:1]) == [made[0].pk]
