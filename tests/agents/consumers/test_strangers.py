"""Users without access to a run's socket, at the handshake and later."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from django.http import HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.test import RequestFactory
from pytest_django import Settings
from websockets.exceptions import ConnectionClosed, InvalidStatus

from agents.doors.websockets.origin import is_allowed
from tests.agents.consumers.conftest import Client
from tests.support.site import Site

Open = Callable[..., Client]


def test_another_user_finds_no_such_run(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=[("text.delta", {"text": "secret"})])
    assert open_client(run, user="peter").close_code() == 4404
    assert open_client("01jb0000000000000000000000").close_code() == 4404


def test_visitors_are_asked_to_sign_in(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    assert open_client(run, user=None).close_code() == 4401
    assert open_client(run, user=None, session="made-up").close_code() == 4401


@pytest.mark.parametrize("after", ["-1", "x", "", "1.5", "99999999999999999999", "٣"])
def test_an_impossible_place_is_refused(site: Site, open_client: Open, after: str) -> None:
    run = site.do("make_run", owner="olga")
    assert open_client(run, after=after).close_code() == 4400


def test_a_watcher_names_the_last_events_of_200_runs_at_most(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    path = f"/ws/runs/{run}/?tree=all" + f"&at={run}:0" * 201
    assert open_client(run, path=path).close_code() == 4400


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "null",
        "http://evil.example",
        "http://localhost",
        "http://localhost:1",
        "http://localhost.evil.example",
        "file://",
    ],
)
def test_foreign_pages_cannot_use_a_session(
    site: Site, open_client: Open, origin: str | None
) -> None:
    run = site.do("make_run", owner="olga")
    with pytest.raises(InvalidStatus) as refused:
        open_client(run, origin=origin)
    assert refused.value.response.status_code == 403


def test_a_name_that_is_not_the_sites_is_refused_though_the_origin_agrees(
    site: Site, open_client: Open
) -> None:
    run = site.do("make_run", owner="olga")
    with pytest.raises(InvalidStatus) as refused:
        open_client(run, origin="http://rebound.example", host="rebound.example")
    assert refused.value.response.status_code == 403


def test_an_origin_that_is_not_a_url_is_refused() -> None:
    # Daphne refuses this before Vel does, but other servers may not.
    assert not is_allowed([(b"host", b"localhost"), (b"origin", b"http://[")])


def test_a_site_with_tls_has_no_pages_without(settings: Settings) -> None:
    plain, safe = [
        [(b"host", b"localhost"), (b"origin", scheme + b"://localhost")]
        for scheme in (b"http", b"https")
    ]
    assert is_allowed(plain)
    assert is_allowed(safe)
    settings.SESSION_COOKIE_SECURE = True
    assert not is_allowed(plain)
    assert is_allowed(safe)


def test_a_trusted_origin_may_differ_from_the_host(settings: Settings) -> None:
    headers = [(b"host", b"localhost"), (b"origin", b"https://vel.example")]
    assert not is_allowed(headers)
    settings.CSRF_TRUSTED_ORIGINS = ["https://vel.example"]
    assert is_allowed(headers)


def test_a_trusted_origin_may_be_all_subdomains_as_for_forms(settings: Settings) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://*.vel.example", "https://*.vel.test:8443"]
    django = CsrfViewMiddleware(lambda request: HttpResponse())
    allowed = {
        "https://a.vel.example": True,
        "https://a.b.vel.example": True,
        "https://vel.example": True,
        "https://a.vel.test:8443": True,
        "https://a.vel.test": False,
        "http://a.vel.example": False,
        "https://a.vel.example:8443": False,
        "https://avel.example": False,
        "https://a.vel.example.org": False,
        "https://*.vel.example.org": False,
        "https://[": False,
        "null": False,
    }
    for origin, expected in allowed.items():
        assert is_allowed([(b"host", b"localhost"), (b"origin", origin.encode())]) is expected
        form = RequestFactory().post("/", headers={"Host": "localhost", "Origin": origin})
        assert django._origin_verified(form) is expected  # type: ignore[attr-defined]


def test_an_unknown_path_is_refused(site: Site, open_client: Open) -> None:
    with pytest.raises(InvalidStatus) as refused:
        open_client("", path="/ws/anything")
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize("csrf", ["", "x", "a" * 32, "a" * 64])
def test_a_session_needs_the_pages_token_to_change_anything(
    site: Site, open_client: Open, csrf: str
) -> None:
    run = site.do("make_run", owner="olga")
    client = open_client(run)

    assert client.ask("cancel", csrf=csrf)["code"] == "csrf"
    assert site.do("run", run=run)["status"] == "queued"


def test_a_frame_after_signing_out_does_nothing_and_ends_the_socket(
    site: Site, open_client: Open
) -> None:
    run = site.do("make_run", owner="olga")
    client = open_client(run)
    site.do("sign_out", session=client.session)

    with suppress(ConnectionClosed):  # the server checks, too, and may have closed it first
        client.say("cancel")

    assert client.close_code() == 4401
    assert site.do("run", run=run)["status"] == "queued"


def test_a_reading_token_watches_without_an_origin_and_changes_nothing(
    site: Site, open_client: Open
) -> None:
    run = site.do("make_run", owner="olga")
    request = site.do("ask", run=run, tool="execute", tool_input={})
    digest = site.do("approval", request=request)["digest"]
    token = site.do("make_token", user="olga", scopes=["read"])
    client = open_client(run, user=None, origin=None, token=token)

    assert client.take()[0]["seq"] == 1
    decision = {"approval_id": request, "digest": digest, "decision": "approve", "csrf": ""}
    assert client.ask("decide", **decision)["code"] == "insufficient_scope"
    assert client.ask("cancel", csrf="")["code"] == "insufficient_scope"


def test_a_token_with_the_scope_decides(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    request = site.do("ask", run=run, tool="execute", tool_input={})
    digest = site.do("approval", request=request)["digest"]
    token = site.do("make_token", user="olga", scopes=["read", "approve"])
    client = open_client(run, user=None, origin=None, token=token)

    decision = {"approval_id": request, "digest": digest, "decision": "approve", "csrf": ""}
    assert client.ask("decide", **decision)["type"] == "accepted"


def test_a_token_without_the_scope_to_read_opens_nothing(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    token = site.do("make_token", user="olga", scopes=["run"])
    assert open_client(run, user=None, origin=None, token=token).close_code() == 4403


def test_a_bad_token_does_not_fall_back_to_the_session(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    assert open_client(run, user="olga", origin=None, token="vel_made_up").close_code() == 4401


@pytest.mark.parametrize("keyword", ["Bearer", "bearer", "Token"])
def test_a_token_has_one_of_two_keywords(site: Site, open_client: Open, keyword: str) -> None:
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=[("text.delta", {"text": "a"})])
    sign = f"{keyword} {site.do('make_token', user='olga', scopes=['read'])}"
    client = open_client(run, user=None, origin=None, authorization=sign)
    assert client.take()[0]["seq"] == 1


@pytest.mark.parametrize("foreign", ["Bearer eyJhbGciOiJub25lIn0", "Basic b2xnYTpvbGdh"])
def test_credentials_for_a_proxy_leave_the_session_and_replace_no_origin(
    site: Site, open_client: Open, foreign: str
) -> None:
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=[("text.delta", {"text": "a"})])
    assert open_client(run, authorization=foreign).take()[0]["seq"] == 1
    assert open_client(run, user=None, authorization=foreign).close_code() == 4401
    with pytest.raises(InvalidStatus) as refused:
        open_client(run, origin=None, authorization=foreign)
    assert refused.value.response.status_code == 403


def test_a_revoked_token_ends_at_the_next_frame(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    token = site.do("make_token", user="olga", scopes=["read", "run"])
    client = open_client(run, user=None, origin=None, token=token)
    site.do("revoke_tokens", user="olga")

    with suppress(ConnectionClosed):  # the socket's own check, every few seconds, may be first
        client.say("cancel")

    assert client.close_code() == 4401
    assert site.do("run", run=run)["status"] == "queued"
