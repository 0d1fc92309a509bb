"""Bodies that a database cannot store, and a search for bodies that cause errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rest_framework.exceptions import ParseError

from agents.doors.rest.wire import MAX_DEPTH, check_json
from tests.agents.api.rows import (
    ask_approval,
    client_for,
    make_agent,
    make_run,
    make_user,
    problem_of,
)

JSON = "application/json"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "body",
    [
        b"\xff",
        b"\xef\xbb\xbf{}",
        b"{",
        b"NaN",
        b'{"agent": NaN}',
        b'{"agent": "writer", "message": "a\\u0000b"}',
        b'{"agent": "a\\u0000b", "message": "x"}',
        b'{"agent": "writer", "message": "\\ud800"}',
        b'{"agent": "writer", "message": "x", "thread": "\\udfff"}',
        b'{"\\ud800": 1}',
        b'{"agent": ' + b"9" * 5000 + b"}",
        b'{"agent": 1e999}',
        b"[" * 200_000,
        b"[" * 500 + b"]" * 500,
        b'{"a":' * 100_000,
    ],
    ids=lambda body: repr(body[:30]),
)
def test_a_body_that_is_not_clean_json_is_a_parse_error(body: bytes) -> None:
    client = client_for(make_user("ann"))
    response = client.generic("POST", "/api/v1/runs", body, content_type=JSON)
    assert (response.status_code, problem_of(response)["code"]) == (400, "parse_error")


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_nesting_is_bounded() -> None:
    check_json(nested(MAX_DEPTH))
    with pytest.raises(ParseError):
        check_json(nested(MAX_DEPTH + 1))


@pytest.mark.parametrize("value", ["\x00", "\ud800", float("inf")])
def test_bad_values_are_found_anywhere(value: Any) -> None:
    places: list[Any] = [value, [value], {"a": {"b": [value]}}]
    places += [{value: 1}] if isinstance(value, str) else []
    for place in places:
        with pytest.raises(ParseError):
            check_json(place)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.sampled_from(["writer", "approve", "edit", "respond", "\x00", "\ud800", "x" * 300]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
run_bodies = st.fixed_dictionaries(
    {"agent": st.just("writer") | anything, "message": st.text() | anything},
    optional={"thread": anything, "key": st.text() | anything, "queue": anything, "x": anything},
)


@pytest.mark.slow
@pytest.mark.both_databases
@pytest.mark.django_db
def test_no_body_breaks_anything() -> None:
    make_agent()
    ann = make_user("ann")
    client = client_for(ann)
    request = ask_approval(make_run(ann))
    urls = st.sampled_from(
        [
            "/api/v1/runs",
            f"/api/v1/runs/{make_run(ann).id}/cancel",
            f"/api/v1/approvals/{request.id}/decide",
        ]
    )
    decisions = st.fixed_dictionaries(
        {"decision": st.sampled_from(["edit", "respond", "reject"]) | anything},
        optional={
            "digest": st.just(request.digest) | anything,
            "input": st.dictionaries(st.text(), anything, max_size=3) | anything,
            "reason": st.text() | anything,
        },
    )
    bodies = (run_bodies | decisions | anything).map(lambda body: json.dumps(body).encode())

    @settings(
        max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(url=urls, body=bodies | st.binary(max_size=50))
    def every_answer_is_a_result_or_a_problem(url: str, body: bytes) -> None:
        response = client.generic("POST", url, body, content_type=JSON)
        assert response.status_code in {200, 201, 400, 404, 409}, response.content
        if response.status_code >= 400:
            problem_of(response)

    every_answer_is_a_result_or_a_problem()


@pytest.mark.slow
@pytest.mark.both_databases
@pytest.mark.django_db
def test_no_query_breaks_anything() -> None:
    make_agent()
    ann = make_user("ann")
    client = client_for(ann)
    run = make_run(ann)
    names = ["cursor", "limit", "status", "agent", "thread", "run", "after", "format", "x"]
    pairs = st.tuples(st.sampled_from(names), st.text(max_size=20) | st.integers().map(str))
    texts = st.lists(pairs, max_size=3).map(
        lambda found: "&".join(f"{name}={value}" for name, value in found)
    )
    urls = st.sampled_from(
        ["/api/v1/runs", "/api/v1/approvals", "/api/v1/agents", f"/api/v1/runs/{run.id}/events"]
    )

    @settings(
        max_examples=80, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(url=urls, query=texts)
    def every_answer_is_a_result_or_a_problem(url: str, query: str) -> None:
        query = query.encode("utf-8", "surrogatepass").decode("latin-1")
        response = client.generic("GET", url, QUERY_STRING=query)
        assert response.status_code in {200, 400}, response.content

    every_answer_is_a_result_or_a_problem()
