"""The profile: own tokens, created, shown once and revoked; the password."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from rest_framework.test import APIClient

from agents.models import ApiToken
from agents.services.tokens import MAX_OWN_TOKENS, create_token
from tests.agents.web.conftest import SignIn

URL = "/profile/"
TOKEN = re.compile(r"vel_[0-9A-Za-z_-]{43}")


def make(client: Client, **fields: Any) -> Any:
    given = {"action": "create", "name": "backup", "scopes": ["read"], "days": "30"}
    return client.post(URL, {**given, **fields})


def secret_in(answer: Any) -> str:
    found = TOKEN.findall(answer.content.decode())
    assert len(found) == 1
    return str(found[0])


def test_a_token_is_shown_once_and_limited_to_its_scopes(sign_in: SignIn) -> None:
    olga = sign_in("olga")
    made = make(olga)
    assert made["Cache-Control"].startswith("max-age=0") or "no-store" in made["Cache-Control"]
    secret = secret_in(made)
    program = APIClient(HTTP_AUTHORIZATION=f"Token {secret}")
    assert program.get("/api/v1/runs").status_code == 200
    assert program.post("/api/v1/runs", {}, format="json").status_code == 403
    again = olga.get(URL).content.decode()
    assert not TOKEN.search(again)
    assert secret[:10] in again
    assert secret not in str(list(ApiToken.objects.values()))


def test_a_revoked_token_ends_immediately(sign_in: SignIn) -> None:
    olga = sign_in("olga")
    secret = secret_in(make(olga))
    token = ApiToken.objects.get()
    assert olga.post(URL, {"action": "revoke", "token": token.pk}).status_code == 302
    program = APIClient(HTTP_AUTHORIZATION=f"Token {secret}")
    assert program.get("/api/v1/runs").status_code == 401
    assert "revoked" in olga.get(URL).content.decode()


def test_tokens_of_others_are_not_shown_or_revoked(sign_in: SignIn) -> None:
    peter = sign_in("peter")
    make(peter, name="peters-deploy-job")
    token = ApiToken.objects.get()
    for stranger in (sign_in("olga"), sign_in("root", superuser=True)):
        assert "peters-deploy-job" not in stranger.get(URL).content.decode()
        assert stranger.post(URL, {"action": "revoke", "token": token.pk}).status_code == 404
    token.refresh_from_db()
    assert token.revoked_at is None


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": "x" * 101},
        {"name": "a\u202eb"},
        {"scopes": []},
        {"scopes": ["read", "root"]},
        {"days": "0"},
        {"days": "366"},
        {"days": ""},
        {"days": "-1"},
        {"days": "9" * 30},
        {"action": "else"},
    ],
)
def test_invalid_values_make_no_token(fields: dict[str, Any], sign_in: SignIn) -> None:
    answer = make(sign_in("olga"), **fields)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()
    assert not ApiToken.objects.exists()


def test_the_number_of_tokens_is_limited(sign_in: SignIn) -> None:
    olga = sign_in("olga")
    user = get_user_model().objects.get(username="olga")
    for _ in range(MAX_OWN_TOKENS):
        last, _secret = create_token(user)
    assert make(olga).status_code == 409
    olga.post(URL, {"action": "revoke", "token": last.pk})
    assert make(olga).status_code == 200


def test_a_token_opens_no_page(sign_in: SignIn) -> None:
    secret = secret_in(make(sign_in("olga")))
    program = Client(HTTP_AUTHORIZATION=f"Token {secret}")
    for path in ("/", URL, "/profile/password/", "/runs/", "/admin/"):
        answer = program.get(path)
        assert answer.status_code == 302
        assert "login" in answer["Location"]


def test_another_site_makes_no_token(sign_in: SignIn) -> None:
    sign_in("olga")
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(get_user_model().objects.get(username="olga"))
    assert make(browser).status_code == 403
    assert not ApiToken.objects.exists()


def test_a_new_password_ends_other_sessions_and_not_this_one(sign_in: SignIn) -> None:
    olga, elsewhere = sign_in("olga"), sign_in("olga")
    user = get_user_model().objects.get(username="olga")
    user.set_password("the-old-one-was-long")
    user.save()
    olga.force_login(user)
    elsewhere.force_login(user)
    new = "entirely-different-words"
    wrong = {"old_password": "guess", "new_password1": new, "new_password2": new}
    assert "Old password" in olga.post("/profile/password/", wrong).content.decode()
    right = {**wrong, "old_password": "the-old-one-was-long"}
    assert olga.post("/profile/password/", right).status_code == 302
    assert olga.get(URL).status_code == 200
    assert elsewhere.get(URL).status_code == 302
    user.refresh_from_db()
    assert user.check_password(new)
