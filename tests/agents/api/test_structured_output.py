"""Runs with structured output, and prompt context, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from agents.models import Run, Thread
from agents.states import RunStatus
from tests.agents.api.rows import client_for, make_agent, make_run, make_user, post, problem_of

pytestmark = pytest.mark.django_db

RUNS = "/api/v1/runs"
SCHEMA = {"type": "object", "properties": {"z": {"type": "number"}, "a": {}}, "required": ["z"]}
BODY: dict[str, Any] = {"agent": "writer", "message": "Count", "output_schema": SCHEMA}


def test_a_form_and_a_context_become_part_of_the_run_and_its_thread() -> None:
    make_agent()
    body = {**BODY, "context": {"customer": "Acme", "n": 1, "vip": False}}
    response = post(client_for(make_user("ann")), RUNS, body)
    assert response.status_code == 201, response.content
    run = Run.objects.get()
    assert run.output_schema == SCHEMA
    assert list(run.output_schema["properties"]) == ["z", "a"]
    values = Thread.objects.get().prompt_values
    assert [values[f"context.{name}"] for name in ("customer", "n", "vip")] == ["Acme", 1, False]


def test_the_value_is_shown_next_to_the_text() -> None:
    make_agent()
    ann = make_user("ann")
    run = make_run(ann, output_schema=SCHEMA)
    value = {"z": 1.5, "a": [None, "ü"]}
    Run.objects.filter(pk=run.pk).update(status=RunStatus.COMPLETED, structured_output=value)
    shape = client_for(ann).get(f"{RUNS}/{run.pk}").json()
    assert shape["structured_output"] == value
    assert client_for(ann).get(RUNS).json()["results"][0]["structured_output"] == value


@pytest.mark.parametrize(
    ("changes", "status", "code", "told"),
    [
        ({"output_schema": []}, 400, "invalid_request", "Must be an object"),
        ({"output_schema": {"type": "x"}}, 400, "invalid_output_schema", "$.type must be one of"),
        ({"output_schema": {"$ref": "http://127.0.0.1/"}}, 400, "invalid_output_schema", "$.$ref"),
        ({"context": "customer"}, 400, "invalid_request", "Must be an object"),
        ({"context": {"a": {}}}, 400, "invalid_request", "context.a must be a text"),
        ({"context": {"a" * 65: 1}}, 400, "invalid_request", "is not a valid name"),
    ],
)
def test_invalid_schemas_are_refused_with_a_reason(
    changes: dict[str, Any], status: int, code: str, told: str
) -> None:
    make_agent()
    response = post(client_for(make_user("ann")), RUNS, {**BODY, **changes})
    assert response.status_code == status
    assert told in response.content.decode()
    if code != "invalid_request":
        assert problem_of(response)["code"] == code
    assert not Run.objects.exists()


def test_a_missing_context_is_listed() -> None:
    make_agent(system_prompt="For {{context.customer}} in {{context.town}}.")
    ann = client_for(make_user("ann"))
    response = post(ann, RUNS, {**BODY, "context": {"town": "Ulm"}})
    assert (response.status_code, problem_of(response)["code"]) == (400, "missing_context")
    assert "missing: customer." in problem_of(response)["detail"]


def test_an_idempotency_key_includes_the_form_and_the_context() -> None:
    make_agent()
    ann = client_for(make_user("ann"))
    body = {**BODY, "context": {"a": 1}}
    first = post(ann, RUNS, body, **{"Idempotency-Key": "k"})
    assert post(ann, RUNS, body, **{"Idempotency-Key": "k"}).json() == first.json()
    for other in ({"context": {"a": 2}}, {"output_schema": {"type": "object"}}):
        response = post(ann, RUNS, {**body, **other}, **{"Idempotency-Key": "k"})
        assert problem_of(response)["code"] == "idempotency_mismatch"
    assert Run.objects.count() == 1
