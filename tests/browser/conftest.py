"""A site with a browser in front of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.support.hang import HANG
from tests.support.site import Site

NewPage = Callable[..., Page]

expect.set_options(timeout=HANG * 1000)

CHROMIUM = "/usr/bin/chromium"
SHELL = shutil.which("chromium-headless-shell")
"""The same engine without windows around it, where it is installed: a quarter of the time for each
page."""
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    # Not longer than these tests: while Playwright's loop lives in this thread, no other loop can
    # run in it and Django's database refuses to be used.
    with sync_playwright() as playwright:
        # `--headless=new` is given by hand: playwright's own is its shell's.
        browser = (
            playwright.chromium.launch(executable_path=SHELL, args=ARGUMENTS)
            if SHELL
            else playwright.chromium.launch(
                executable_path=CHROMIUM,
                args=["--headless=new", *ARGUMENTS],
                ignore_default_args=["--headless"],
            )
        )
        yield browser
        browser.close()


@pytest.fixture
def new_page(browser: Browser, site: Site) -> Iterator[NewPage]:
    """`new_page("olga", width=390)`: a page of somebody who is signed in.

    A test fails when a page of it wrote an error to its console, as a browser does for whatever
    the Content-Security-Policy refuses.
    """
    contexts: list[BrowserContext] = []
    errors: list[str] = []

    def make(user: str | None = None, **options: Any) -> Page:
        width, height = options.pop("width", 1280), options.pop("height", 900)
        context = browser.new_context(
            base_url=site.url, viewport={"width": width, "height": height}, **options
        )
        contexts.append(context)
        if user is not None:
            key = site.do("sign_in", user=user)
            context.add_cookies([{"name": "sessionid", "value": key, "url": site.url}])
        page = context.new_page()
        page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        return page

    yield make
    for context in contexts:
        context.close()
    assert [
        error for error in errors if not (_is_lost_connection(error) or _is_refusal(error))
    ] == []


def _is_refusal(error: str) -> bool:
    """Chromium tells the console of an answer that the page shows to the person."""
    return "status of 400 (Bad Request)" in error or "status of 409 (Conflict)" in error


def _is_lost_connection(error: str) -> bool:
    """A server that a test has stopped is not the page's fault."""
    return "net::ERR_" in error or error.startswith("WebSocket connection to")
