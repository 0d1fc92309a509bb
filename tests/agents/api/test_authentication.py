"""Authentication with tokens and sessions; all other requests are refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from agents.api.schema_document import api_document
from agents.models import ApiToken
from agents.services.tokens import create_token
from tests.agents.api.rows import client_for, client_with, make_agent, make_user, post, problem_of

pytestmark = pytest.mark.django_db

RUNS = "/api/v1/runs"


def assert_refused(client: APIClient) -> None:
    response = client.get(RUNS)
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == "Bearer"
    assert problem_of(response)["code"] in ("not_authenticated", "authentication_failed")


def test_requests_without_a_token_get_a_401() -> None:
    assert_refused(APIClient())
    assert "vel token create" in problem_of(APIClient().get(RUNS))["detail"]


@pytest.mark.parametrize("keyword", ["Bearer", "bearer", "Token", "TOKEN"])
def test_a_token_lets_its_user_in(keyword: str) -> None:
    _, secret = create_token(make_user("ann"))
    client = APIClient(HTTP_AUTHORIZATION=f"{keyword} {secret}")
    assert client.get(RUNS).status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        *("Token", "Token ", "Token a b", "Token vel_unknown", "Token v\xe9l"),
        *("Bearer", "Bearer x", "Bearer vel_a b", "Bearer vel_unknown", "Bearer vel_\xe9"),
        "Basic YTpi",
    ],
)
def test_a_header_that_names_no_living_token_is_refused(header: str) -> None:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=header)
    assert_refused(client)


@pytest.mark.parametrize("keyword", ["Token", "Bearer"])
def test_a_wrong_token_does_not_fall_back_to_a_session(keyword: str) -> None:
    client = APIClient(HTTP_AUTHORIZATION=f"{keyword} vel_unknown")
    client.force_login(make_user("ann"))
    assert_refused(client)


@pytest.mark.parametrize("foreign", ["Bearer eyJhbGciOiJub25lIn0", "Basic YTpi"])
def test_credentials_for_a_proxy_leave_the_session(foreign: str) -> None:
    client = APIClient(HTTP_AUTHORIZATION=foreign)
    client.force_login(make_user("ann"))
    assert client.get(RUNS).status_code == 200


def test_the_schema_names_a_bearer_token() -> None:
    document = api_document()
    scheme = document["components"]["securitySchemes"]["token"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert "`Authorization: Bearer vel_…`" in scheme["description"]
    assert "`Token`" in scheme["description"]
    assert document["paths"]["/runs"]["get"]["security"][0] == {"token": ["read"]}


@pytest.mark.both_databases
def test_an_expired_token_is_refused() -> None:
    token, secret = create_token(make_user("ann"))
    client = client_with(secret)
    assert client.get(RUNS).status_code == 200
    ApiToken.objects.filter(pk=token.pk).update(expires_at=timezone.now())
    assert_refused(client)


def test_a_revoked_token_is_refused() -> None:
    token, secret = create_token(make_user("ann"))
    ApiToken.objects.filter(pk=token.pk).update(revoked_at=timezone.now())
    assert_refused(client_with(secret))


def test_the_token_of_an_inactive_user_is_refused() -> None:
    user = make_user("ann")
    client = client_for(user)
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert_refused(client)


def test_the_last_use_of_a_token_is_noted_at_most_once_a_minute() -> None:
    token, secret = create_token(make_user("ann"))
    client = client_with(secret)
    client.get(RUNS)
    token.refresh_from_db()
    first = token.last_used_at
    assert first is not None
    client.get(RUNS)
    token.refresh_from_db()
    assert token.last_used_at == first
    ApiToken.objects.filter(pk=token.pk).update(last_used_at=first - timedelta(seconds=61))
    client.get(RUNS)
    token.refresh_from_db()
    assert token.last_used_at >= first


def test_a_session_writes_only_with_a_csrf_token() -> None:
    make_agent()
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(make_user("ann"))
    body = {"agent": "writer", "message": "Hello"}
    refused = post(client, RUNS, body)
    assert (refused.status_code, problem_of(refused)["code"]) == (403, "permission_denied")
    secret = "a" * 32
    client.cookies["csrftoken"] = secret
    assert post(client, RUNS, body, **{"X-CSRFToken": secret}).status_code == 201


def test_a_form_on_another_site_starts_nothing() -> None:
    make_agent()
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(make_user("ann"))
    response = client.post(RUNS, {"agent": "writer", "message": "Hello"}, format="multipart")
    assert response.status_code == 403
