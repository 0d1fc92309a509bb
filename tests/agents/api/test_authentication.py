"""Authentication with tokens and sessions; all other requests are refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from agents.models import ApiToken
from agents.services.tokens import create_token
from tests.agents.api.rows import client_for, client_with, make_agent, make_user, post, problem_of

pytestmark = pytest.mark.django_db

RUNS = "/api/v1/runs"


def assert_refused(client: APIClient) -> None:
    response = client.get(RUNS)
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == "Token"
    assert problem_of(response)["code"] in ("not_authenticated", "authentication_failed")


def test_nobody_is_asked_for_a_token() -> None:
    assert_refused(APIClient())
    assert "vel token create" in problem_of(APIClient().get(RUNS))["detail"]


def test_a_token_lets_its_user_in() -> None:
    assert client_for(make_user("ann")).get(RUNS).status_code == 200


@pytest.mark.parametrize(
    "header",
    ["Token", "Token ", "Token a b", "Token vel_unknown", "Token v\xe9l", "Bearer x", "Basic YTpi"],
)
def test_a_header_that_names_no_living_token_is_refused(header: str) -> None:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=header)
    assert_refused(client)


def test_a_wrong_token_does_not_fall_back_to_a_session() -> None:
    client = client_with("vel_unknown")
    client.force_login(make_user("ann"))
    assert_refused(client)


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
