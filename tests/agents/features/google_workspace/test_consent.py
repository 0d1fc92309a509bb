"""Connect Google by OAuth consent, and the redirect back."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from agents.features.credentials.public import Credential
from agents.models import AuditEntry
from tests.support.google_workspace_server import AUTH, CLIENT, GoogleServer
from tests.support.runs import make_user

pytestmark = pytest.mark.django_db

BACK = "/connections/google/"
ASK = {"service": "google", "action": "ask"}


@pytest.fixture(autouse=True)
def _client(google: GoogleServer, settings: Any) -> None:
    client = {f"GOOGLE_{name.upper()}": value for name, value in CLIENT.items()}
    settings.VEL = {**settings.VEL, **client, "PUBLIC_URL": "https://vel.example"}


def signed_in(name: str = "ann") -> Client:
    client = Client()
    client.force_login(make_user(name))
    return client


def go(client: Client, *access: str) -> str:
    """Return the address at Google to which the page redirects."""
    answer = client.post("/connections/", {**ASK, "access": access})
    found = re.search(r'href="([^"]+)" rel="noreferrer"', answer.content.decode())
    assert found is not None, answer.content.decode()
    return unescape(found[1])


def state_of(address: str) -> str:
    return parse_qs(urlsplit(address).query)["state"][0]


def come_back(client: Client, **query: str) -> str:
    answer = client.get(BACK, query, follow=True)
    assert answer.redirect_chain == [("/connections/", 302)]
    return answer.content.decode()


def test_there_and_back(google: GoogleServer) -> None:
    client = signed_in()
    address = go(client, "gmail.readonly", "calendar.events", "nonsense")
    asked = parse_qs(urlsplit(address).query)
    assert asked["scope"] == [f"{AUTH}gmail.readonly {AUTH}calendar.events"]
    assert asked["redirect_uri"] == [f"https://vel.example{BACK}"]
    code = google.consent(address)
    shown = come_back(client, code=code, state=state_of(address))
    assert "Google is connected as ada@example.com (calendar.events, gmail.readonly)" in shown
    row = Credential.objects.get()
    assert row.owner is not None
    assert row.owner.username == "ann"
    assert [entry.action for entry in AuditEntry.objects.filter(kind="credential")] == [
        "credential.stored"
    ]
    # A callback works only once.
    assert "Start again" in come_back(client, code=google.consent(address), state=state_of(address))


def test_a_person_cannot_be_made_to_connect_anothers_account(google: GoogleServer) -> None:
    eve, ann = signed_in("eve"), signed_in("ann")
    address = go(eve, "gmail.readonly")
    code = google.consent(address)
    for state in (state_of(address), "", "é"):
        assert "Start again" in come_back(ann, code=code, state=state)
    go(ann, "gmail.readonly")
    assert "Start again" in come_back(ann, code=code, state=state_of(address))
    # The code of another user's consent with one's own state: the PKCE verifier does not match.
    own = go(ann, "gmail.readonly")
    assert "does not accept" in come_back(ann, code=code, state=state_of(own))
    assert not Credential.objects.exists()


def test_a_refused_or_late_consent_connects_nothing(
    google: GoogleServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = signed_in()
    state = state_of(go(client, "gmail.readonly"))
    assert "did not consent" in come_back(client, error="access_denied", state=state)
    monkeypatch.setattr("agents.features.google_workspace.pages.MAX_AGE", -1)
    address = go(client, "gmail.readonly")
    late = come_back(client, code=google.consent(address), state=state_of(address))
    assert "Start again" in late
    assert not Credential.objects.exists()


def test_a_consent_needs_a_scope_and_a_client(google: GoogleServer, settings: Any) -> None:
    client = signed_in()
    assert b"Select at least one permission" in client.post("/connections/", ASK).content
    settings.VEL = {**settings.VEL, "GOOGLE_CLIENT_ID": ""}
    assert b"Connect your Google account" not in client.get("/connections/").content
    asked = client.post("/connections/", {**ASK, "access": "gmail.send"})
    assert b"Paste a key instead" in asked.content
    assert Client().get(BACK).status_code == 302
    assert Client().get(BACK)["Location"].startswith("/login/")


def test_scopes_of_a_consent_are_not_selected_for_a_service_account() -> None:
    answer = signed_in().post("/connections/", {**ASK, "access": ["gmail.readonly"]})
    assert "Continue to Google" in answer.content.decode()
    assert " checked" not in answer.content.decode()
