"""Every address of the project: its headers, its permissions, and its limits.

The tests find a new address by its URL pattern. Each exception has a reason. An exception that is
not needed makes a test fail, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.http.response import HttpResponseBase
from django.test import Client

from agents.doors.rest.base import UnknownUrl
from agents.models import Agent
from agents.services.request_rates import forget_shares
from agents.settings import DataSettings
from tests.agents.api.rows import client_for
from tests.support import site_writer
from tests.support.every_address import Address, addresses

pytestmark = pytest.mark.django_db

OPEN = {
    "healthz": "balancers sign in nowhere",
    "readyz": "balancers sign in nowhere, and get yes or no",
    "login": "here people sign in",
    "logout": "shows and changes nothing of others",
    "admin/login/": "here operators sign in",
    "admin:login": "is behind the address before",
    "admin:logout": "shows and changes nothing of others",
    "favicon.ico": "leads to a picture",
    "web:app-manifest": "is the same for everybody, and browsers request it without cookies",
    "web:theme": "sets a cookie of the own browser",
    "web:language": "sets a cookie of the own browser",
    "web:texts": "is the same for everybody, also for people who sign in",
}
"""Addresses with another answer for anonymous users than "sign in" or "not found"."""
FOR_EVERYBODY = {
    "web:skill": "the library is for everybody who has signed in",
    "web:skill-export": "the library is for everybody who has signed in",
    "web:skill-file": "the library is for everybody who has signed in",
    "api:skill": "the library is for everybody who has signed in",
    "api:skill-files": "the library is for everybody who has signed in",
    "api:skill-file": "the library is for everybody who has signed in",
    "api:skill-export": "the library is for everybody who has signed in",
    "api:chat-stream": "a new chat is not an error: 204",
}
"""Addresses with arguments that a user may read with the arguments of another user."""
PASSWORDS_WITHOUT_LIMIT = {
    "admin:auth_user_add": "sets the password of somebody else and checks none",
    "admin:auth_user_password_change": "sets the password of somebody else and checks none",
    "web:connections": "stores a token and compares it with nothing",
    "web:provider-keys": "stores a key and compares it with nothing",
    "web:webhooks": "stores a secret and compares it with nothing",
    "admin:vel_credentials_credential_add": "stores a token and compares it with nothing",
    "admin:vel_databases_databaseconnection_add": "stores a password and compares it with nothing",
}
REQUIRED = {
    "X-Content-Type-Options": {"nosniff"},
    "X-Frame-Options": {"DENY"},
    "Referrer-Policy": {"same-origin"},
    "Cross-Origin-Opener-Policy": {"same-origin"},
}
METHODS = ("get", "post", "put", "delete", "options")
FORMS = ("get", "post")
"""The methods of pages. For the other methods, many pages take the same time again."""
ATTEMPTS = 3


@pytest.fixture
def client() -> Client:
    """The browser of an anonymous user. A failure of the server is a 500, not an exception."""
    return Client(raise_request_exception=False)


def signed_in(name: str, *, root: bool = False) -> Client:
    users = get_user_model().objects
    if not users.filter(username=name).exists():
        users.create_user(name, password="x", is_staff=root, is_superuser=root)
    client = Client(raise_request_exception=False)
    client.force_login(users.get(username=name))
    return client


@dataclass(frozen=True)
class Answer:
    """The answer to a request. `sent_away`: it redirects to a login page."""

    address: Address
    status: int
    sent_away: bool
    takes_password: bool
    wrong_headers: list[str]


@cache
def answers(who: str, *methods: str) -> list[Answer]:
    """Return the answers of every address, and of some that do not exist, to these methods."""
    client = (
        Client(raise_request_exception=False)
        if who == "nobody"
        else signed_in(who, root=who == "root")
    )
    leaving = ("logout", "admin:logout")  # requested last
    every = sorted(addresses(own_id(who)), key=lambda address: address.name in leaving)
    for path in ("/nothing", "/admin/nothing", "/a%00b"):
        every.append(Address("", path, frozenset(), None))
    return [
        Answer(
            address,
            response.status_code,
            response.status_code == 302 and "/login/" in response["Location"],
            is_form(response),
            wrong_headers(response),
        )
        for address in every
        for response in asked(client, address.path, methods)
    ]


def own_id(name: str) -> dict[str, object]:
    """Return the argument of addresses with the ID of a user."""
    found = get_user_model().objects.filter(username=name).first()
    return {"id": found.pk} if found else {}


def asked(
    client: Client, path: str, methods: Sequence[str] = METHODS
) -> Iterator[HttpResponseBase]:
    for method in methods:
        response = getattr(client, method)(path)
        yield response
        let_go(response)


def let_go(response: HttpResponseBase) -> None:
    """Close a file that is sent. Closing the response would close the database, too."""
    for close in response._resource_closers:
        close()


def wrong_headers(response: HttpResponseBase) -> list[str]:
    found = [
        f"{name}: {response.headers.get(name)}"
        for name, allowed in REQUIRED.items()
        if response.headers.get(name) not in allowed
    ]
    policy = response.headers.get("Content-Security-Policy", "")
    if not policy or "unsafe" in policy or "*" in policy:
        found.append(f"Content-Security-Policy: {policy}")
    elif "default-src 'self'" in policy:
        if not {"base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'"} <= set(
            policy.split("; ")
        ):
            found.append(f"Content-Security-Policy: {policy}")
    elif "default-src 'none'" not in policy:
        found.append(f"Content-Security-Policy: {policy}")
    if not re.search("no-store|private", response.headers.get("Cache-Control", "")):
        found.append(f"Cache-Control: {response.headers.get('Cache-Control')}")
    return found


@pytest.mark.parametrize(
    ("who", "methods"),
    [
        ("nobody", METHODS),
        pytest.param("eve", FORMS, marks=pytest.mark.slow),
        ("root", FORMS),
        pytest.param("eve", METHODS, marks=pytest.mark.storm),
        pytest.param("root", METHODS, marks=pytest.mark.storm),
    ],
)
def test_every_response_has_the_headers(who: str, methods: Sequence[str]) -> None:
    for answer in answers(who, *methods):
        assert answer.status != 500, answer
        assert answer.wrong_headers == [], answer


def test_errors_have_the_headers(client: Client, settings: Any) -> None:
    strict = Client(enforce_csrf_checks=True, raise_request_exception=False)
    answers = {
        400: client.get("/login/", headers={"Host": "evil.example"}),
        403: strict.post("/login/", {"username": "x", "password": "y"}),
        404: client.get("/nothing/here"),
        405: client.get("/hooks/x"),
        413: client.post(
            "/api/v1/threads/x/files",
            b"x",
            content_type="multipart/form-data; boundary=x",
            headers={"Content-Length": "999999999"},
        ),
    }
    settings.VEL = {**settings.VEL, "SIGN_INS": 1}
    forget_shares()
    for _ in range(2):
        answers[429] = client.post("/login/", {"username": "x", "password": "y"})
    for status, answer in answers.items():
        assert answer.status_code == status
        assert wrong_headers(answer) == [], status
        assert not re.search(rb"<style|\sstyle=|<script(?![^>]* src=)", answer.content), status


def test_the_page_of_a_failure_has_the_headers(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("on purpose")

    monkeypatch.setattr("velproject.monitoring.metrics.MetricsSettings.now", fail)
    answer = client.get("/metrics")
    assert answer.status_code == 500
    assert wrong_headers(answer) == []


def test_only_listed_addresses_are_open_to_anonymous_users() -> None:
    found = {
        answer.address.name
        for answer in answers("nobody", *METHODS)
        if not answer.sent_away and answer.status not in (401, 403, 404, 405, 411, 413, 415)
    }
    assert found == set(OPEN)


def world() -> dict[str, object]:
    """Return arguments of addresses: the IDs of olga's objects."""
    site_writer.make_user("olga")
    run = site_writer.make_run("olga")
    thread = site_writer.run(run)["thread"]
    agent = Agent.objects.get()
    asked_for = site_writer.ask(run, "execute", {"command": "ls"})
    outputs = DataSettings.now().workspaces / thread / "outputs"
    outputs.mkdir(parents=True)
    (outputs / "SKILL.md").write_text("Between us")
    olga = get_user_model().objects.get(username="olga")
    site_writer.allow("olga", ["manage_library"])
    values = {
        "run_id": run,
        "thread_id": thread,
        "request_id": asked_for,
        "approval_id": asked_for,
        "call_id": "toolu_1",
        "slug": agent.slug,
        "agent": agent.slug,
        "agent_id": agent.pk,
        "chat_id": "chat-1",
        "skill_id": site_writer.bring_skill(by="olga"),
        "path": "SKILL.md",
        "number": 1,
        "schedule_id": site_writer.make_schedule("olga"),
        "hook_id": site_writer.make_inbound_webhook("olga"),
        "token_id": client_token(olga),
    }
    Agent.objects.update(everyone=False, owner=olga)
    return values


def client_token(user: Any) -> int:
    from agents.services.tokens import create_token

    return create_token(user)[0].pk


NOT_READ_HERE = {
    "web:run-call": "wants the number of a call",
    "web:run-picture": "the file is not a picture",
    "web:run-browse-file": "wants the path of a file",
    "web:run-browse-picture": "wants the path of a picture",
    "web:run-browse-page": "wants the path of a PDF",
    "api:memory-file": "the file does not exist",
    "api:mcp-server": "needs the permission to configure MCP servers",
    "api:provider-key": "needs the permission to manage the keys of providers",
    "api:file-content": "wants a path",
    "api:memory-revisions": "wants a path",
    "api:chat-history": "the chat does not exist",
    **{
        f"api:{name}": "needs the permission of the admin"
        for name in (
            *("budget", "database", "group", "machine", "notification", "notification-target"),
            *("stored-credential", "toolbox", "user", "user-thread", "user-token"),
        )
    },
}
"""Addresses that olga cannot read with these arguments; other tests cover them."""


def of_objects(values: dict[str, object]) -> Iterator[Address]:
    """Yield the addresses with arguments outside of the admin."""
    for address in addresses(values):
        if address.arguments and not address.path.startswith("/admin/"):
            yield address


def test_a_stranger_finds_no_objects_of_others() -> None:
    values = world()
    olga, eve = signed_in("olga"), signed_in("eve")
    unreadable, found = set(), set()
    for address in of_objects(values):
        own = olga.get(address.path)
        if own.status_code not in (200, 204, 405):
            unreadable.add(address.name)
        let_go(own)
        for response in asked(eve, address.path):
            if response.status_code not in (400, 403, 404, 405, 411, 413, 415):
                found.add(address.name)
    assert found == set(FOR_EVERYBODY)
    assert unreadable == set(NOT_READ_HERE)


def test_the_admin_is_for_staff() -> None:
    for answer in answers("eve", *FORMS):
        if answer.address.path.startswith("/admin/") and answer.address.name not in OPEN:
            assert answer.status in (302, 403, 404, 405), answer


@pytest.mark.usefixtures("one_minute")
def test_every_endpoint_of_the_api_counts_requests(settings: Any) -> None:
    site_writer.make_user("olga")
    olga = get_user_model().objects.get(username="olga")
    settings.VEL = {**settings.VEL, "API_USER_REQUESTS": 1}
    api = client_for(olga)
    assert api.get("/api/v1/agents").status_code == 200
    for address in addresses():
        if not address.name.startswith("api:"):
            continue
        view = address.view.view_class
        for method in view.scopes:
            answer = api.generic(method, address.path, "{}", content_type="application/json")
            assert answer.status_code == 429, (method, address.path)
        assert view.scopes or view is UnknownUrl


def password_forms() -> list[Address]:
    """Return the addresses whose pages, without a user or for root, have a field for a password."""
    pages = (*answers("nobody", *METHODS), *answers("root", *FORMS))
    found = {page.address.name for page in pages if page.takes_password}
    return [address for address in addresses(own_id("root")) if address.name in found]


@pytest.mark.usefixtures("one_minute")
def test_every_page_that_takes_a_password_counts_attempts(settings: Any) -> None:
    settings.VEL = {**settings.VEL, "SIGN_INS": ATTEMPTS}
    root = signed_in("root", root=True)
    limited, unlimited = set(), set()
    for address in password_forms():
        browser = root if "login" not in address.name else Client()
        forget_shares()
        typed = {"username": "root", "password": "wrong", "old_password": "wrong"}
        statuses = [browser.post(address.path, typed).status_code for _ in range(ATTEMPTS + 1)]
        (limited if statuses[-1] == 429 else unlimited).add(address.name)
    assert {"login", "admin/login/", "admin/password_change/", "web:password"} <= limited
    assert unlimited == set(PASSWORDS_WITHOUT_LIMIT)


def is_form(page: HttpResponseBase) -> bool:
    """Return whether it is a page with a field for a password."""
    is_page = page.headers.get("Content-Type", "").startswith("text/html")
    return is_page and not page.streaming and b'type="password"' in getattr(page, "content", b"")
