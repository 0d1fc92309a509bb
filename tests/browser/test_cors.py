"""A page of another origin at the REST API, in a real browser."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.support.site import Site, migrated_site

pytestmark = pytest.mark.chromium

ASK = """
async ([url, headers, options]) => {
    try {
        const response = await fetch(url, {headers, ...options});
        return [response.status, (await response.text()).includes("run.completed")];
    } catch (error) {
        return error.name;
    }
}
"""


class EmptyPage(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>Another page</title>")

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def others() -> Iterator[list[str]]:
    """Serve an empty page at two other origins of the same host."""
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), EmptyPage) for _ in range(2)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield [f"http://localhost:{server.server_port}" for server in servers]
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def own(tmp_path: Any, others: list[str]) -> Iterator[Site]:
    """Serve a site that allows the first of the other origins."""
    site = migrated_site(tmp_path)
    site.environment["VEL_CORS_ORIGINS"] = others[0]
    try:
        site.do("make_user", name="olga")
        site.start_server()
        yield site
    finally:
        site.close()


@pytest.fixture
def page(browser: Browser, own: Site) -> Iterator[Page]:
    """Return a page of a browser in which olga is signed in."""
    context = browser.new_context()
    key = own.do("sign_in", user="olga")
    # Cookies do not depend on the port: the browser may send this one.
    context.add_cookies([{"name": "sessionid", "value": key, "url": own.url}])
    yield context.new_page()
    context.close()


def test_a_page_of_a_named_origin_reads_and_streams_with_a_token_and_not_with_cookies(
    own: Site, others: list[str], page: Page
) -> None:
    run = own.do("make_run", owner="olga")
    ended = ("run.completed", {"finish_reason": "end_turn", "usage": {}, "cost": None})
    own.do("append", run=run, status="completed", events=[ended])
    token = {"Authorization": f"Bearer {own.do('make_token', user='olga', scopes=['read'])}"}
    stream = f"{own.url}/api/v1/runs/{run}/events/stream"
    named, unnamed = others

    page.goto(named)
    assert page.evaluate(ASK, [stream, token, {}]) == [200, True]
    assert page.evaluate(ASK, [f"{own.url}/api/v1/runs", {}, {}]) == [401, False]
    for headers in ({}, token):
        with_cookies = [stream, headers, {"credentials": "include"}]
        assert page.evaluate(ASK, with_cookies) == "TypeError"
    page.goto(unnamed)
    assert page.evaluate(ASK, [stream, token, {}]) == "TypeError"
