"""The scopes of tokens limit the permissions of their users."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.urls import URLPattern
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory, force_authenticate

from agents.api.urls import urlpatterns
from agents.doors.rest.base import SESSION_ONLY, ApiView, UnknownUrl
from agents.models import ApiToken, TokenScope
from tests.agents.api.rows import (
    APIClient,
    ask_approval,
    client_for,
    make_agent,
    make_run,
    make_user,
    post,
    problem_of,
)

READ, RUN, APPROVE, MANAGE = "read", "run", "approve", "manage"


def endpoints() -> list[tuple[str, str, str]]:
    """Return method, URL and needed scope of every endpoint, for a run that waits for approval."""
    ann = make_user("ann")
    agent = f"/api/v1/agents/{make_agent(owner=ann).pk}"
    memory = f"{agent}/memory"
    request = ask_approval(make_run(ann))
    run, approval = f"/api/v1/runs/{request.run_id}", f"/api/v1/approvals/{request.id}"
    return [
        ("GET", "/api/v1/agents", READ),
        ("GET", memory, READ),
        ("GET", f"{memory}/AGENTS.md", READ),
        ("PUT", f"{memory}/knowledge/a.md", MANAGE),
        ("DELETE", f"{memory}/knowledge/a.md", MANAGE),
        ("GET", f"{memory}-revisions", READ),
        ("POST", f"{memory}-restore", MANAGE),
        ("GET", f"{agent}/skills", READ),
        ("POST", f"{agent}/skills", MANAGE),
        ("PUT", f"{agent}/skills/1", MANAGE),
        ("PATCH", f"{agent}/skills/1", MANAGE),
        ("DELETE", f"{agent}/skills/1", MANAGE),
        ("GET", "/api/v1/skills", READ),
        ("GET", "/api/v1/skills/1/files/SKILL.md", READ),
        ("POST", "/api/v1/skills/1/versions/1/review", MANAGE),
        ("GET", "/api/v1/runs", READ),
        ("POST", "/api/v1/runs", RUN),
        ("GET", run, READ),
        ("HEAD", run, READ),
        ("GET", f"{run}/events", READ),
        ("GET", "/api/v1/approvals", READ),
        ("GET", approval, READ),
        ("POST", f"{approval}/decide", APPROVE),
        ("GET", "/api/v1/grants", READ),
        ("GET", "/api/v1/usage", READ),
        ("POST", "/api/v1/grants/none/revoke", APPROVE),
        ("POST", f"{run}/cancel", RUN),
    ]


def call(client: APIClient, method: str, url: str) -> int:
    return client.generic(method, url, "{}", content_type="application/json").status_code


@pytest.mark.django_db
@pytest.mark.parametrize("scope", [READ, RUN, APPROVE, MANAGE])
def test_a_token_is_limited_to_its_scope(scope: str) -> None:
    listed = endpoints()
    client = client_for(User.objects.get(username="ann"), scope)
    for method, url, needed in listed:
        status = call(client, method, url)
        assert (status != 403) == (needed == scope), (method, url, status)


@pytest.mark.django_db
def test_a_missing_scope_is_named() -> None:
    make_agent()
    client = client_for(make_user("ann"), READ)
    document = problem_of(post(client, "/api/v1/runs", {"agent": "writer", "message": "Hello"}))
    assert document["code"] == "insufficient_scope"
    assert "'run'" in document["detail"]


@pytest.mark.django_db
def test_a_session_has_all_scopes() -> None:
    listed = endpoints()
    client = APIClient()
    client.force_login(User.objects.get(username="ann"))
    for method, url, _ in listed:
        assert call(client, method, url) not in (401, 403), (method, url)


@pytest.mark.parametrize("pattern", urlpatterns, ids=lambda pattern: str(pattern.pattern))
def test_every_method_of_every_view_names_its_scope(pattern: URLPattern) -> None:
    view = pattern.callback.view_class
    assert issubclass(view, ApiView)
    if view is UnknownUrl:
        return
    answered = {
        name.upper() for name in ("get", "post", "put", "patch", "delete") if hasattr(view, name)
    }
    assert set(view.scopes) == answered
    assert set(view.scopes.values()) <= {*TokenScope.values, SESSION_ONLY}


class NoScopes(ApiView):
    """A view without `scopes`."""

    def get(self, request: Request) -> Response:
        return Response()


@pytest.mark.django_db
def test_a_view_without_scopes_refuses_every_token() -> None:
    ann = make_user("ann")
    request = APIRequestFactory().get("/")
    force_authenticate(request, ann, ApiToken(user=ann, scopes=TokenScope.values))
    assert NoScopes.as_view()(request).status_code == 403
    force_authenticate(request, ann)
    assert NoScopes.as_view()(request).status_code == 200


def all_methods() -> list[tuple[str, str, str]]:
    """Return method, URL and needed scope of every method of every endpoint."""
    found = []
    for pattern in urlpatterns:
        view = pattern.callback.view_class
        address = re.sub(r"<int:\w+>", "1", str(pattern.pattern))
        address = "/api/v1/" + re.sub(r"<\w+:\w+>", "x", address)
        found += [(method, address, scope) for method, scope in view.scopes.items()]
    return found


@pytest.mark.django_db
def test_all_other_scopes_without_the_needed_one_do_not_suffice() -> None:
    ann = make_user("ann")
    clients = {
        needed: client_for(ann, *sorted(set(TokenScope.values) - {needed}))
        for needed in (*TokenScope.values, SESSION_ONLY)
    }
    for method, address, needed in all_methods():
        refused = clients[needed].generic(method, address)
        assert refused.status_code == 403, (method, address)
        assert problem_of(refused)["code"] == "insufficient_scope"


def test_reading_needs_only_the_scope_read() -> None:
    reading = {scope for method, _, scope in all_methods() if method == "GET"}
    assert reading == {READ, SESSION_ONLY}
    writing = {(method, path) for method, path, scope in all_methods() if scope == READ}
    posts = {path for method, path in writing if method != "GET"}
    # `rehearse` changes nothing; the chat needs `run` or `approve`, too, depending on the body.
    assert posts == {"/api/v1/agents/x/policy/rehearse", "/api/v1/agents/x/chat"}


def test_the_page_about_the_api_lists_the_requests_that_need_a_session() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs/reference/rest-api.md").read_text("utf-8")
    table = page.partition("which only a session can send:")[2].partition("\n\n##")[0]
    listed = set(re.findall(r"^\| `([A-Z]+) /([a-z]+)", table, re.MULTILINE))
    needed = {
        (method, address.removeprefix("/api/v1/").partition("/")[0])
        for method, address, scope in all_methods()
        if scope == SESSION_ONLY
    }
    assert listed == needed
