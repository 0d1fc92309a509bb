"""API tokens in the admin: created, shown once, and revoked permanently."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents.models import ApiToken
from agents.services.tokens import authenticate_token, create_token
from tests.agents.admin import rows
from tests.agents.admin.pages import act, client_of, list_url, messages_of, page_url, text_of

pytestmark = pytest.mark.django_db

ADD = "admin:agents_apitoken_add"
SECRET = re.compile(r"vel_[\w-]{40,}")


def make(client, **fields):
    data = {"name": "ci", "scopes": ["read", "run"], "days": 30, **fields}
    return client.post(reverse(ADD), data, follow=True)


def test_the_secret_is_shown_exactly_once_and_works():
    root = rows.superuser()
    client = client_of(root)

    response = make(client, user=root.pk)

    secret = SECRET.search(messages_of(response)[0])[0]
    token = authenticate_token(secret)
    assert token is not None
    assert (token.user, token.name, token.scopes) == (root, "ci", ["read", "run"])
    for url in (list_url(ApiToken), page_url(token), reverse("admin:index")):
        text = text_of(client.get(url))
        assert not SECRET.search(text)
        assert token.digest not in text


def test_a_superuser_makes_tokens_for_others():
    ada = rows.user("ada")

    make(client_of(rows.superuser()), user=ada.pk, days="")

    token = ApiToken.objects.get()
    assert (token.user, token.expires_at) == (ada, None)


def test_others_make_tokens_for_themselves_only():
    root = rows.superuser()
    clerk = rows.staff("clerk", "add_apitoken", "view_apitoken")

    make(client_of(clerk), user=root.pk)

    assert ApiToken.objects.get().user == clerk


@pytest.mark.parametrize(
    ("field", "value"), [("scopes", []), ("scopes", ["root"]), ("days", 0), ("days", 100_000)]
)
def test_an_invalid_value_is_an_error_of_its_field(field, value):
    root = rows.superuser()

    response = make(client_of(root), user=root.pk, **{field: value})

    assert list(response.context["adminform"].form.errors) == [field]
    assert not ApiToken.objects.exists()


def test_a_revoked_token_opens_nothing():
    root = rows.superuser()
    token, secret = create_token(root)
    client = client_of(root)

    first = act(client, "revoke_selected", token)
    second = act(client, "revoke_selected", token)

    assert "revoked." in messages_of(first)[0]
    assert "was revoked already." in messages_of(second)[0]
    assert authenticate_token(secret) is None


def test_revoking_needs_the_permission_to_change():
    token, secret = create_token(rows.user())

    act(client_of(rows.staff("reader", "view_apitoken")), "revoke_selected", token)

    assert authenticate_token(secret) is not None


def test_a_token_cannot_be_edited_or_deleted():
    token, _ = create_token(rows.user())
    client = client_of(rows.superuser())

    assert client.post(page_url(token), {"name": "mine"}).status_code == 403
    delete = reverse("admin:agents_apitoken_delete", args=[token.pk])
    assert client.post(delete, {"post": "yes"}).status_code == 403


def test_the_list_needs_no_more_queries_for_ten_tokens_than_for_one():
    client = client_of(rows.superuser())
    create_token(rows.user("first"))
    with CaptureQueriesContext(connection) as few:
        client.get(list_url(ApiToken))
    for number in range(9):
        create_token(rows.user(f"user-{number}"))

    with CaptureQueriesContext(connection) as many:
        text = text_of(client.get(list_url(ApiToken)))

    assert text.count('class="action-select"') == 10
    assert len(many) <= len(few) + 1
