"""Pages of other origins at the REST API: only of named origins, and never with cookies."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse

import pytest

from tests.support.hang import HANG
from tests.support.site import Site, migrated_site
from velproject.server_settings import origins

APP = "https://app.example.org"
RUNS = "/api/v1/runs"


@pytest.fixture(scope="module", params=[f"{APP},http://localhost:3000", ""], ids=["on", "off"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    site = migrated_site(tmp_path_factory.mktemp("cors"))
    try:
        site.environment["VEL_CORS_ORIGINS"] = request.param
        site.do("make_user", name="olga")
        site.start_server()
        yield site
    finally:
        site.close()


@pytest.fixture
def is_on(served: Site) -> bool:
    return bool(served.environment["VEL_CORS_ORIGINS"])


def ask(site: Site, path: str = RUNS, method: str = "GET", **headers: str) -> HTTPResponse:
    connection = HTTPConnection("localhost", site.port, timeout=HANG)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, headers=named)
    return connection.getresponse()


def cors_of(response: HTTPResponse) -> dict[str, str]:
    prefix = "access-control-"
    return {
        name.lower().removeprefix(prefix): value
        for name, value in response.getheaders()
        if name.lower().startswith(prefix)
    }


def preflight(site: Site, origin: str = APP, path: str = RUNS) -> HTTPResponse:
    asked = {"Access_Control_Request_Method": "POST"}
    asked["Access_Control_Request_Headers"] = "authorization,content-type"
    return ask(site, path, "OPTIONS", Origin=origin, **asked)


def test_a_page_of_a_named_origin_may_ask(served: Site, is_on: bool) -> None:
    response = preflight(served)
    found = cors_of(response)
    if not is_on:
        assert (response.status, found) == (401, {})
        return
    assert response.status == 200
    assert found["allow-origin"] == APP
    wanted = {
        "authorization",
        "content-type",
        "idempotency-key",
        "if-match",
        "ai-sdk-version",
        "last-event-id",
    }
    assert wanted <= set(found["allow-headers"].split(", "))
    assert {"GET", "POST", "PUT", "PATCH", "DELETE"} <= set(found["allow-methods"].split(", "))
    assert "cookie" not in found["allow-headers"]
    assert "x-csrftoken" not in found["allow-headers"]


def test_answers_and_refusals_can_be_read_with_a_token(served: Site, is_on: bool) -> None:
    token = served.do("make_token", user="olga", scopes=["read"])
    run = served.do("make_run", owner="olga")
    for path, sign, status in (
        (RUNS, token, 200),
        (RUNS, "vel_none", 401),
        (f"{RUNS}/none", token, 404),
        (f"{RUNS}/{run}/events/stream", token, 200),
    ):
        response = ask(served, path, Origin=APP, Authorization=f"Bearer {sign}")
        assert response.status == status
        assert cors_of(response).get("allow-origin") == (APP if is_on else None), path
        exposed = cors_of(response).get("expose-headers", "")
        assert ({"retry-after", "etag"} <= set(exposed.split(", "))) is is_on
        assert ("origin" in response.headers.get("Vary", "").lower()) is is_on


def test_no_answer_allows_cookies(served: Site) -> None:
    session = served.do("sign_in", user="olga")
    for response in (
        preflight(served),
        ask(served, Origin=APP, Cookie=f"sessionid={session}"),
    ):
        assert "allow-credentials" not in cors_of(response)


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://app.example.org",
        "https://app.example.org:8443",
        "https://app.example.org.evil.example",
        "https://sub.app.example.org",
        "null",
        "https://[",
    ],
)
def test_other_origins_get_nothing(served: Site, origin: str) -> None:
    assert cors_of(preflight(served, origin)) == {}
    assert cors_of(ask(served, Origin=origin)) == {}


@pytest.mark.parametrize(
    "path", ["/", "/login/", "/admin/", "/profile/", "/mcp", "/healthz", "/api/"]
)
def test_only_the_api_is_open(served: Site, path: str) -> None:
    assert cors_of(preflight(served, path=path)) == {}
    assert cors_of(ask(served, path, Origin=APP)) == {}


def test_a_form_of_a_named_origin_is_still_refused_with_a_session(served: Site) -> None:
    session = served.do("sign_in", user="olga")
    sign = {"Cookie": f"sessionid={session}", "Content_Type": "application/json"}
    assert ask(served, method="POST", Origin=APP, **sign).status == 403


def test_origins_are_those_that_browsers_send() -> None:
    assert origins("") == ()
    assert origins(" https://App.example.org , http://localhost:3000,") == (
        "https://app.example.org",
        "http://localhost:3000",
    )


@pytest.mark.parametrize(
    "wrong",
    [
        *("*", "null", "app.example.org", "https://app.example.org/", "https://*.example.org"),
        *("https://", "https://a@app.example.org", "https://app.example.org?x", "https://["),
        *("ftp://app.example.org", "file:///", "https://ok.example, *"),
    ],
)
def test_an_invalid_origin_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the setting shows its own text
        origins(wrong)
