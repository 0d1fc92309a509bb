"""Store a bot token: over the API, the page and the admin; permissions, and hidden values."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from agents.features.credentials.public import Credential
from agents.features.slack.actions import save_slack_token
from agents.models import AuditEntry
from agents.services.errors import NotAllowed
from agents.services.secrets import rotate_secrets
from tests.agents.api.rows import client_for, make_user, post, problem_of
from tests.support.slack_server import TOKEN, SlackServer

pytestmark = pytest.mark.django_db

URL = "/api/v1/credentials/slack"
CONNECT = {"service": "slack", "action": "connect"}
ADMIN = "/admin/vel_credentials/credential"


def configured(user: User) -> bool:
    answer = client_for(user).get(f"{URL}/status")
    assert answer.status_code == 200
    assert set(answer.json()) == {"configured"}
    return bool(answer.json()["configured"])


def test_a_token_is_stored_seen_to_be_there_and_removed(slack: SlackServer) -> None:
    ann = make_user("ann")
    assert not configured(ann)
    answer = post(client_for(ann), URL, {"token": TOKEN})
    assert (answer.status_code, answer.json()) == (200, {"configured": True})
    assert configured(ann)
    assert not configured(make_user("bob"))
    assert client_for(ann).delete(URL).status_code == 204
    assert not configured(ann)
    assert client_for(ann).delete(URL).status_code == 404
    entries = AuditEntry.objects.filter(kind="credential").order_by("id")
    assert [entry.action for entry in entries] == ["credential.stored", "credential.removed"]
    assert TOKEN not in str([entry.changes for entry in entries])


@pytest.mark.parametrize(
    "token", ["", "xoxp-1234567890-abc", "hello", "xoxb-short", TOKEN + "\n\x00"]
)
def test_an_invalid_bot_token_is_not_sent_to_slack(slack: SlackServer, token: str) -> None:
    answer = post(client_for(make_user("ann")), URL, {"token": token})
    assert answer.status_code == 400
    assert problem_of(answer)
    assert not slack.asked
    assert not Credential.objects.exists()


def test_a_token_that_slack_rejects_is_401_and_keeps_the_old_one(slack: SlackServer) -> None:
    ann = make_user("ann")
    save_slack_token(TOKEN, by=ann)
    answer = post(client_for(ann), URL, {"token": TOKEN.replace("1", "9")})
    assert answer.status_code == 401
    assert answer.json()["code"] == "credential_rejected"
    assert Credential.objects.get().secret.reveal() == TOKEN


def test_a_token_without_its_scopes_names_the_missing_ones(slack: SlackServer) -> None:
    slack.scopes = "channels:read,groups:read"
    answer = post(client_for(make_user("ann")), URL, {"token": TOKEN})
    assert answer.status_code == 400
    assert "chat:write" in answer.json()["detail"]


def test_an_unreachable_slack_gives_503_and_stores_nothing(
    slack: SlackServer, settings: Any
) -> None:
    settings.VEL = {**settings.VEL, "SLACK_URL": "http://127.0.0.1:9/api/"}
    answer = post(client_for(make_user("ann")), URL, {"token": TOKEN})
    assert answer.status_code == 503
    assert not Credential.objects.exists()
    assert TOKEN not in answer.content.decode()


def test_only_permitted_people_store_a_shared_token(slack: SlackServer) -> None:
    ann = make_user("ann")
    with pytest.raises(NotAllowed):
        save_slack_token(TOKEN, by=ann, shared=True)
    ann.user_permissions.add(Permission.objects.get(codename="share_credential"))
    save_slack_token(TOKEN, by=User.objects.get(pk=ann.pk), shared=True)
    assert configured(make_user("bob"))


def test_the_page_stores_and_never_shows_it(slack: SlackServer) -> None:
    ann = make_user("ann")
    client = Client()
    client.force_login(ann)
    assert "Not configured" in client.get("/connections/").content.decode()
    refused = client.post(
        "/connections/", {"service": "slack", "action": "connect", "token": "xoxb-" + "z" * 30}
    )
    assert refused.status_code == 400
    assert "z" * 30 not in refused.content.decode()
    page = client.post("/connections/", {**CONNECT, "token": TOKEN}, follow=True)
    assert "vel-bot in ACME" in page.content.decode()
    assert TOKEN not in page.content.decode()
    page = client.post("/connections/", {"service": "slack", "action": "remove"}, follow=True)
    assert "Not configured" in page.content.decode()


def test_the_admin_shows_no_token_and_stores_a_shared_one(slack: SlackServer) -> None:
    root = User.objects.create_superuser("root")
    save_slack_token(TOKEN, by=make_user("ann"))
    client = Client()
    client.force_login(root)
    made = client.post(f"{ADMIN}/add/", {"slack_token": TOKEN}, follow=True)
    assert made.status_code == 200, made.content[:500]
    assert Credential.objects.filter(owner=None).count() == 1
    for row in Credential.objects.all():
        shown = client.get(f"{ADMIN}/{row.pk}/change/").content.decode()
        assert "vel-bot in ACME" in shown
        assert TOKEN not in shown
        assert row.secret._token not in shown
        assert client.post(f"{ADMIN}/{row.pk}/change/", {}).status_code == 403
    shared = Credential.objects.get(owner=None)
    client.post(f"{ADMIN}/{shared.pk}/delete/", {"post": "yes"})
    assert not Credential.objects.filter(owner=None).exists()
    refused = client.post(f"{ADMIN}/add/", {"slack_token": "xoxb-" + "9" * 30})
    assert "does not accept" in refused.content.decode()


def test_keys_are_rotated(slack: SlackServer, settings: Any) -> None:
    settings.VEL = {**settings.VEL, "SECRET_KEYS": ("first key of this test",)}
    save_slack_token(TOKEN, by=make_user("ann"))
    settings.VEL = {**settings.VEL, "SECRET_KEYS": ("second key", "first key of this test")}
    assert rotate_secrets().encrypted == 1
    settings.VEL = {**settings.VEL, "SECRET_KEYS": ("second key",)}
    assert Credential.objects.get().secret.reveal() == TOKEN
