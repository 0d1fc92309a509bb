"""Google credentials: how each door stores them, their tokens, and where they never appear."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.apps import apps
from django.contrib.auth.models import User
from django.core import serializers
from django.test import Client

from agents.features.credentials.actions import CredentialRejected, remove_credential
from agents.features.credentials.public import Credential
from agents.features.google_workspace.actions import save_google_key
from agents.features.google_workspace.client.tokens import AccessToken
from agents.models import AuditEntry
from agents.secret_text import SecretText, SecretTextField
from agents.services.errors import InvalidRequest, NotAllowed
from tests.agents.api.rows import client_for, post
from tests.agents.features.google_workspace.story import approve, begin, call, letter, play, results
from tests.support.google_workspace_server import (
    AUTH,
    CLIENT,
    EVERYTHING,
    REFRESH,
    GoogleServer,
    authorized_user,
    pem,
    service_account_key,
)
from tests.support.runs import drive_to_end, make_user, start_run

pytestmark = pytest.mark.django_db
in_runs = pytest.mark.django_db(transaction=True)

URL = "/api/v1/credentials/google"
LIST = call("list_gmail_messages")
SEND = call("send_gmail_message", to=["bob@example.org"], subject="Hello", text="World")
ACCESS = ("gmail.modify", "calendar.readonly", "calendar.events")


def test_it_is_stored_seen_to_be_there_and_removed(google: GoogleServer) -> None:
    ann, bob = client_for(make_user("ann")), client_for(make_user("bob"))
    answer = post(ann, URL, {"key": json.loads(authorized_user())})
    assert (answer.status_code, answer.json()) == (200, {"configured": True})
    assert ann.get(f"{URL}/status").json() == {"configured": True}
    assert bob.get(f"{URL}/status").json() == {"configured": False}
    row = Credential.objects.get()
    assert row.account == "ada@example.com (calendar.events, calendar.readonly, gmail.modify)"
    assert bob.delete(URL).status_code == 404
    assert ann.delete(URL).status_code == 204
    entries = AuditEntry.objects.filter(kind="credential").order_by("id")
    assert [entry.action for entry in entries] == ["credential.stored", "credential.removed"]
    assert REFRESH not in str([entry.changes for entry in entries])


@pytest.mark.slow
@in_runs
def test_a_service_account_acts_as_the_named_user(tmp_path: Path, google: GoogleServer) -> None:
    user, run = begin(tmp_path, LIST, SEND, connect=False)
    body = {
        "key": json.loads(service_account_key()),
        "subject": "ada@example.com",
        "access": list(ACCESS),
    }
    assert post(client_for(user), URL, body).status_code == 200
    run = drive_to_end(run, until=("waiting",))
    approve(user, run)
    assert results(drive_to_end(run))[1]["sent"] is True


@pytest.mark.parametrize(
    ("key", "more", "status", "said"),
    [
        ({"type": "external_account"}, {}, 400, "service_account"),
        ({**json.loads(authorized_user()), "refresh_token": "x\ny"}, {}, 400, "refresh_token"),
        (json.loads(authorized_user()), {"subject": "eve@example.com"}, 400, "Leave this empty"),
        (json.loads(authorized_user(refresh_token="1//other")), {}, 401, "revoked"),
        (json.loads(authorized_user(client_secret="other")), {}, 401, "OAuth client"),
        ("service", {}, 400, "acts as"),
        ("service", {"subject": "ada@example.com"}, 400, "Choose at least one"),
        ("service", {"subject": "ada@example.com", "access": ["all"]}, 400, "Expected one or more"),
        ("service", {"subject": "eve@example.com", "access": ACCESS}, 401, "domain-wide"),
        ("stolen", {"subject": "ada@example.com", "access": ACCESS}, 401, "revoked"),
        ("short", {"subject": "ada@example.com", "access": ACCESS}, 400, "2048 bits"),
    ],
)
def test_an_unusable_credential_is_refused_with_a_reason_and_keeps_the_old_one(
    google: GoogleServer, key: Any, more: dict[str, Any], status: int, said: str
) -> None:
    ann = make_user("ann")
    save_google_key(authorized_user(), by=ann)
    before = Credential.objects.get().secret.reveal()
    if key == "service":
        key = json.loads(service_account_key())
    elif isinstance(key, str):
        bits = {"stolen": 2048, "short": 1024}[key]
        other = rsa.generate_private_key(65537, bits)
        key = json.loads(service_account_key(private_key=pem(other)))
    answer = post(client_for(ann), URL, {"key": key, **more})
    assert answer.status_code == status, answer.content
    assert said in answer.json()["detail"]
    for secret in filter(None, (key.get("private_key"), key.get("refresh_token"))):
        assert secret not in answer.content.decode()
    assert Credential.objects.get().secret.reveal() == before


def test_the_token_address_of_a_file_is_ignored(google: GoogleServer) -> None:
    """Otherwise a pasted file could make this server call any address of its network."""
    ann = make_user("ann")
    elsewhere = {"token_uri": "http://127.0.0.1:9/token", "universe_domain": "evil.example"}
    save_google_key(
        service_account_key(**elsewhere), subject="ada@example.com", access=ACCESS, by=ann
    )
    save_google_key(authorized_user(**elsewhere), by=ann)
    assert google.tokens_made >= 2


def test_a_grant_of_something_else_is_refused(google: GoogleServer) -> None:
    google.grants[REFRESH] = ("ada@example.com", f"openid {AUTH}drive")
    with pytest.raises(InvalidRequest, match="Its scopes are not used by Vel"):
        save_google_key(authorized_user(), by=make_user("ann"))


def test_an_unreachable_google_gives_503_and_stores_nothing(
    google: GoogleServer, settings: Any
) -> None:
    settings.VEL = {**settings.VEL, "GOOGLE_TOKEN_URL": "http://127.0.0.1:9/token"}
    answer = post(client_for(make_user("ann")), URL, {"key": json.loads(authorized_user())})
    assert answer.status_code == 503
    assert not Credential.objects.exists()


# In runs


@in_runs
def test_without_a_credential_the_call_names_the_solution(
    tmp_path: Path, google: GoogleServer
) -> None:
    save_google_key(authorized_user(), by=make_user("eve"))
    asked = len(google.asked)
    _, found = play(tmp_path, LIST, connect=False)
    assert "not connected" in found[0]
    assert len(google.asked) == asked, "eve's is not used"


@pytest.mark.slow
@in_runs
def test_one_token_serves_many_calls_and_not_another_credential(
    tmp_path: Path, google: GoogleServer
) -> None:
    user, run = begin(tmp_path, LIST, LIST)
    before = google.tokens_made
    drive_to_end(run)
    assert google.tokens_made == before + 1
    bob = REFRESH.replace("ada", "bob")
    google.grants[bob] = ("bob@example.com", EVERYTHING)
    google.mailboxes["bob@example.com"] = google.mailboxes.pop("ada@example.com")
    google.mailboxes["bob@example.com"].address = "bob@example.com"
    save_google_key(authorized_user(refresh_token=bob), by=user)
    assert results(drive_to_end(start_run(user)))[0] == {"messages": []}


@pytest.mark.slow
@in_runs
def test_a_removed_credential_is_not_used_once_more(tmp_path: Path, google: GoogleServer) -> None:
    """Even though its token is still cached and valid for an hour."""
    user, run = begin(tmp_path, LIST, SEND)
    run = drive_to_end(run, until=("waiting",))
    remove_credential("google", by=user)
    approve(user, run)
    assert "not connected" in results(drive_to_end(run))[1]
    assert not google.mail.sent


@pytest.mark.slow
@in_runs
def test_a_token_that_ends_early_is_renewed_once(tmp_path: Path, google: GoogleServer) -> None:
    google.faults[("POST", "/messages/send")] = ["revoke"]
    _, found = play(tmp_path, SEND)
    assert found[0]["sent"] is True
    assert len(google.mail.sent) == 1
    google.faults[("GET", "/messages")] = ["revoke"] * 5
    asked = len(google.asked)
    run = drive_to_end(start_run(User.objects.get(), "again"), until=("waiting",))
    del run
    assert sum(path.startswith("/gmail") for _, path in google.asked[asked:]) <= 2


@in_runs
def test_a_revoked_grant_names_the_solution(tmp_path: Path, google: GoogleServer) -> None:
    user, run = begin(tmp_path, LIST)
    google.grants.clear()
    google.tokens.clear()
    found = results(drive_to_end(run))
    assert "Connect Google again" in found[0]
    with pytest.raises(CredentialRejected):
        save_google_key(authorized_user(), by=user)


@in_runs
def test_an_unreadable_credential_is_reported(tmp_path: Path, google: GoogleServer) -> None:
    _, run = begin(tmp_path, LIST)
    Credential.objects.update(secret=SecretText.seal("no JSON"))
    assert "cannot be read" in results(drive_to_end(run))[0]


@in_runs
def test_only_permitted_people_store_a_shared_credential(
    tmp_path: Path, google: GoogleServer
) -> None:
    user, run = begin(tmp_path, LIST, connect=False)
    with pytest.raises(NotAllowed):
        save_google_key(authorized_user(), by=user, shared=True)
    save_google_key(authorized_user(), by=User.objects.create_superuser("root"), shared=True)
    assert results(drive_to_end(run))[0] == {"messages": []}


# Pages


def test_the_page_stores_and_never_shows_it(google: GoogleServer) -> None:
    client = Client()
    client.force_login(make_user("ann"))
    typed: dict[str, Any] = {"service": "google", "action": "connect", "key": authorized_user()}
    page = client.post("/connections/", typed, follow=True)
    text = page.content.decode()
    assert "ada@example.com (calendar.events" in text
    assert REFRESH not in text
    typed |= {
        "key": service_account_key(),
        "subject": "eve@example.com",
        "access": ["gmail.send"],
    }
    refused = client.post("/connections/", typed)
    assert refused.status_code == 400
    text = refused.content.decode()
    assert "domain-wide" in text
    assert 'value="gmail.send" checked' in text
    assert 'value="eve@example.com"' in text
    assert "PRIVATE KEY" not in text
    page = client.post("/connections/", {"service": "google", "action": "remove"}, follow=True)
    assert "Your Google credential was removed" in page.content.decode()
    assert not Credential.objects.exists()


def test_the_admin_stores_a_shared_one(google: GoogleServer) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    add = "/admin/vel_credentials/credential/add/"
    typed = {
        "google_key": service_account_key(),
        "google_subject": "ada@example.com",
        "google_access": ["gmail.send"],
    }
    google.delegated.add(("ada@example.com", f"{AUTH}gmail.send"))
    made = client.post(add, typed, follow=True)
    assert "Google is connected as ada@example.com (gmail.send)" in made.content.decode()
    row = Credential.objects.get(owner=None, provider="google")
    shown = client.get(f"/admin/vel_credentials/credential/{row.pk}/change/").content.decode()
    assert "PRIVATE KEY" not in shown
    assert row.secret._token not in shown
    for wrong, said in (
        ({}, "Give exactly one of these: Slack bot token, Google JSON key."),
        ({**typed, "slack_token": "xoxb-" + "9" * 30}, "Give exactly one of these"),
        ({**typed, "google_subject": "x"}, "acts as"),
        ({**typed, "google_access": ["everything"]}, "not one of the available choices"),
    ):
        refused = client.post(add, wrong).content.decode()
        assert said in refused
        assert "PRIVATE KEY" not in refused


# Where credentials never appear


@in_runs
@pytest.mark.bubblewrap
def test_no_secret_is_anywhere_but_encrypted_in_its_row(
    tmp_path: Path, google: GoogleServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    look = (
        "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; env; "
        "grep -rsE 'ya29|GOCSPX|refresh-t0ken' /sandbox /tmp /etc /home /var /run /dev/shm "
        "2>/dev/null; echo looked"
    )
    google.mail.receive(letter())
    google.faults[("GET", "/messages")] = [None, 400, "cut", "revoke"]
    run, found = play(tmp_path, LIST, LIST, LIST, LIST, call("execute", command=look), SEND,
                      sandbox=True)  # fmt: skip
    assert "looked" in str(found[4])
    secrets = [*google.tokens, REFRESH, CLIENT["client_secret"]]
    assert len(secrets) > 2
    everything = [caplog.text, *os.environ.values(), repr(AccessToken(secrets[0], 0, frozenset()))]
    for model in apps.get_models():
        for row in model._default_manager.all():
            everything.append(serializers.serialize("json", [row]))
            everything += [
                str(getattr(row, field.attname))
                for field in model._meta.concrete_fields
                if not isinstance(field, SecretTextField)
            ]
    for secret in secrets:
        assert not any(secret in text for text in everything)
    del run


def test_keys_are_rotated(google: GoogleServer, settings: Any) -> None:
    from agents.services.secrets import rotate_secrets

    settings.VEL = {**settings.VEL, "SECRET_KEYS": ("first key of this test",)}
    save_google_key(authorized_user(), by=make_user("ann"))
    settings.VEL = {**settings.VEL, "SECRET_KEYS": ("second key", "first key of this test")}
    assert rotate_secrets().encrypted == 1
    settings.VEL = {**settings.VEL, "SECRET_KEYS": ("second key",)}
    assert REFRESH in Credential.objects.get().secret.reveal()
