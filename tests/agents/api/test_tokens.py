"""A user's own tokens over REST. Only a session can create, list and revoke them."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from agents.doors.rest.pagination import write_cursor
from agents.models import ApiToken
from agents.services.tokens import create_token
from tests.agents.api.rows import client_for, client_with, make_user, post, problem_of

pytestmark = pytest.mark.django_db

TOKENS = "/api/v1/tokens"
BODY = {"name": "backup", "scopes": ["read"], "days": 30}


def session_of(name: str, *, check_csrf: bool = False) -> APIClient:
    client = APIClient(enforce_csrf_checks=check_csrf)
    client.force_login(make_user(name))
    return client


def test_a_session_makes_lists_and_ends_its_tokens() -> None:
    client = session_of("ann")
    made = client.post(TOKENS, BODY, format="json")
    assert made.status_code == 201
    secret, token = made.json()["secret"], made.json()["token"]
    assert client_with(secret).get("/api/v1/runs").status_code == 200
    listed = client.get(TOKENS)
    assert listed.json()["results"] == [
        {**token, "last_used_at": listed.json()["results"][0]["last_used_at"]}
    ]
    assert secret.encode() not in listed.content
    assert client.delete(f"{TOKENS}/{token['id']}").status_code == 204
    assert client_with(secret).get("/api/v1/runs").status_code == 401
    assert client.get(TOKENS).json()["results"][0]["state"] == "revoked"


@pytest.mark.parametrize("method", ["get", "head", "post", "delete"])
def test_no_token_makes_lists_or_ends_tokens(method: str) -> None:
    ann = make_user("ann", superuser=True)
    client = client_for(ann)
    url = f"{TOKENS}/{ApiToken.objects.get().pk}" if method == "delete" else TOKENS
    response = getattr(client, method)(url, BODY if method == "post" else None, format="json")
    assert response.status_code == 403
    assert ApiToken.objects.filter(revoked_at=None).count() == 1


def test_tokens_of_others_are_not_listed_or_ended() -> None:
    token, secret = create_token(make_user("bob"))
    client = session_of("ann")
    assert client.get(TOKENS).json()["results"] == []
    refused = client.delete(f"{TOKENS}/{token.pk}")
    assert (refused.status_code, problem_of(refused)["code"]) == (404, "unknown_token")
    assert client_with(secret).get("/api/v1/runs").status_code == 200


def test_another_site_makes_no_token() -> None:
    assert post(session_of("ann", check_csrf=True), TOKENS, BODY).status_code == 403
    assert not ApiToken.objects.exists()


def test_a_cursor_that_names_no_number_is_refused() -> None:
    cursor = write_cursor("-id", "x", "x")
    response = session_of("ann").get(f"{TOKENS}?cursor={cursor}")
    assert (response.status_code, problem_of(response)["code"]) == (400, "invalid")
