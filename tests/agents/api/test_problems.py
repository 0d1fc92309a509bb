"""Every refused request gets a problem document, for each kind of error."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404
from django.test import AsyncClient
from rest_framework.exceptions import Throttled

from agents.api import agents as agents_views
from agents.doors.rest.problems import exception_handler
from agents.services.errors import Conflict, InvalidRequest, NotAllowed, NotFound, ServiceError
from agents.services.tokens import create_token
from tests.agents.api.rows import APIClient, client_for, make_user, post, problem_of


class VerySpecialConflict(Conflict):
    """A service may subclass its errors without a change of the API."""


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (InvalidRequest("m"), 400, "invalid"),
        (ServiceError("m"), 400, "refused"),
        (NotAllowed("m"), 403, "not_allowed"),
        (NotFound("m", code="unknown_agent"), 404, "unknown_agent"),
        (Conflict("m"), 409, "conflict"),
        (VerySpecialConflict("m"), 409, "conflict"),
        (Http404(), 404, "not_found"),
        (PermissionDenied(), 403, "not_allowed"),
    ],
)
def test_each_kind_of_refusal_has_its_status(error: Exception, status: int, code: str) -> None:
    response = exception_handler(error, {})
    assert (response.status_code, response.data["code"]) == (status, code)


def test_a_throttled_client_gets_a_retry_time() -> None:
    response = exception_handler(Throttled(wait=12.3), {})
    assert response.status_code == 429
    assert response["Retry-After"] == "13"


def break_agents(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Make the selector of one view fail: no input can cause these errors."""

    def fail(user: object) -> Any:
        raise error

    monkeypatch.setattr(agents_views, "agents_for", fail)


@pytest.mark.both_databases
@pytest.mark.django_db
@pytest.mark.parametrize("kind", [OperationalError, InterfaceError])
def test_a_busy_database_asks_to_try_again(
    monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    client = client_for(make_user("ann"))
    break_agents(monkeypatch, kind("database is locked: /var/lib/vel"))
    response = client.get("/api/v1/agents")
    assert (response.status_code, problem_of(response)["code"]) == (503, "database_unavailable")
    assert int(response["Retry-After"]) > 0
    assert b"/var/lib" not in response.content


@pytest.mark.both_databases
@pytest.mark.django_db
def test_unexpected_errors_are_logged_and_not_revealed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_for(make_user("ann"))
    break_agents(monkeypatch, RuntimeError("the password is hunter2"))
    with caplog.at_level(logging.ERROR, logger="agents.api"):
        response = client.get("/api/v1/agents")
    assert (response.status_code, problem_of(response)["code"]) == (500, "internal_error")
    assert b"hunter2" not in response.content
    logged = [record for record in caplog.records if record.name == "agents.api"]
    assert logged[0].exc_info is not None
    assert "hunter2" in str(logged[0].exc_info[1])


@pytest.mark.django_db
@pytest.mark.parametrize(
    "url",
    ["", "nothing", "runs/", "runs/a%00b", "runs/a%0ab", "runs/%ED%A0%80", "runs/" + "a" * 65,
     "runs/é", "approvals/%2e%2e/decide", "runs/x/events/", "%0a"],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_unknown_url_is_not_found(method: str, url: str) -> None:
    response = APIClient().generic(method, f"/api/v1/{url}")
    assert (response.status_code, problem_of(response)["code"]) == (404, "not_found")


@pytest.mark.django_db
def test_a_method_that_is_not_answered_is_named() -> None:
    client = client_for(make_user("ann"), "read")
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"):
        response = client.generic(method, "/api/v1/agents")
        assert (response.status_code, problem_of(response)["code"]) == (405, "method_not_allowed")
        assert response["Allow"].startswith("GET")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x", ""],
)
def test_only_json_is_read(content_type: str) -> None:
    client = client_for(make_user("ann"))
    response = client.generic(
        "POST", "/api/v1/runs/x/cancel", b"reason=why", content_type=content_type
    )
    assert response.status_code == 415
    assert problem_of(response)["code"] == "unsupported_media_type"


@pytest.mark.django_db
@pytest.mark.parametrize("accept", ["text/html", "application/problem+json", "garbage", ";;;", "*"])
def test_any_accept_header_gets_json(accept: str) -> None:
    response = client_for(make_user("ann")).get("/api/v1/agents", headers={"Accept": accept})
    assert (response.status_code, response["Content-Type"]) == (200, "application/json")


@pytest.mark.django_db
@pytest.mark.parametrize("charset", ["hex", "zlib", "rot13", "idna", "utf-16", "nonsense"])
def test_the_charset_of_a_request_changes_nothing(charset: str) -> None:
    _, secret = create_token(make_user("ann"))
    # Over ASGI, as in production: Django's WSGI request rejects some of these charsets itself.
    headers = {"Authorization": f"Token {secret}"}

    async def ask(*request: Any, **options: Any) -> Any:
        return await AsyncClient().generic(*request, headers=headers, **options)

    call = async_to_sync(ask)
    content_type = f"application/json; charset={charset}"
    read = call("GET", "/api/v1/runs?agent=%41", content_type=content_type)
    assert read.status_code == 200
    write = call("POST", "/api/v1/runs", b'{"a": 1}', content_type=content_type)
    assert list(problem_of(write)["errors"]) == ["a"]


@pytest.mark.django_db
def test_a_thousand_parameters_are_refused() -> None:
    response = client_for(make_user("ann")).get("/api/v1/runs?" + "a=1&" * 1001)
    assert (response.status_code, problem_of(response)["code"]) == (400, "bad_request")


@pytest.mark.both_databases
@pytest.mark.django_db
def test_a_chunked_body_is_not_taken_for_an_empty_one() -> None:
    client = client_for(make_user("ann"))
    response = client.post("/api/v1/runs", headers={"Transfer-Encoding": "chunked"})
    assert (response.status_code, problem_of(response)["code"]) == (411, "length_required")


@pytest.mark.django_db
def test_invalid_json_is_reported_with_its_position() -> None:
    response = client_for(make_user("ann")).generic(
        "POST", "/api/v1/runs", b'{"agent": }', content_type="application/json"
    )
    document = problem_of(response)
    assert (response.status_code, document["code"]) == (400, "parse_error")
    assert "column 11" in document["detail"]


@pytest.mark.django_db
def test_many_unknown_fields_make_a_short_answer() -> None:
    body = {f"{number:0>5000}": 1 for number in range(100)}
    response = post(client_for(make_user("ann")), "/api/v1/runs", body)
    assert response.status_code == 400
    assert len(response.content) < 10_000
