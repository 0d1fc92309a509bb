"""A site and a browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.support.hang import HANG
from tests.support.site import Site

NewPage = Callable[..., Page]
Colours = Literal["light", "dark"]

expect.set_options(timeout=HANG * 1000)

CHROMIUM = "/usr/bin/chromium"
SHELL = shutil.which("chromium-headless-shell")
"""The same engine without windows, if installed: it takes a quarter of the time for each page."""
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
    # Only as long as these tests: while Playwright's loop runs in this thread, no other loop can
    # run in it, and Django refuses to use the database.
    with sync_playwright() as playwright:
        # Set `--headless=new` here, because Playwright's own option is for the headless shell.
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


class Contexts:
    """Browser contexts that tests use one after the other.

    A new context has an empty cache: it loads and compiles all scripts and style sheets again.
    """

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        self._url = url
        self._free: dict[bool, list[BrowserContext]] = {True: [], False: []}

    @contextmanager
    def one(self, *, scripts: bool) -> Iterator[BrowserContext]:
        """Yield a context without pages, cookies and storage, with or without JavaScript."""
        free = self._free[scripts]
        context = (
            free.pop()
            if free
            else self._browser.new_context(
                base_url=self._url,
                java_script_enabled=scripts,
                # Without the GPU, an endless animation takes much CPU time.
                reduced_motion="reduce",
                viewport={"width": 1280, "height": 900},
            )
        )
        yield context
        for page in context.pages:
            session = context.new_cdp_session(page)
            what = {"origin": self._url, "storageTypes": "all"}
            session.send("Storage.clearDataForOrigin", what)
            page.close()
        context.clear_cookies()
        free.append(context)


@pytest.fixture(scope="package")
def contexts(browser: Browser, site: Site) -> Contexts:
    return Contexts(browser, site.url)


@pytest.fixture
def new_page(contexts: Contexts, site: Site) -> Iterator[NewPage]:
    """Yield a function: `new_page("olga", width=390)` is a page of a signed-in user.

    A test fails if one of its pages wrote an error to the console, for example because of the
    Content-Security-Policy.
    """
    errors: list[str] = []
    stack = ExitStack()

    def make(
        user: str | None = None,
        *,
        width: int = 1280,
        height: int = 900,
        scripts: bool = True,
    ) -> Page:
        context = stack.enter_context(contexts.one(scripts=scripts))
        if user is not None:
            key = site.do("sign_in", user=user)
            context.add_cookies([{"name": "sessionid", "value": key, "url": site.url}])
        page = context.new_page()
        if (width, height) != (1280, 900):
            page.set_viewport_size({"width": width, "height": height})
        page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        return page

    with stack:
        yield make
    assert [
        error for error in errors if not (_is_lost_connection(error) or _is_refusal(error))
    ] == []


MORE = ["view_all_runs", "change_agent", "configure_approval", "manage_provider_keys"]
"""Permissions for the console, the editor of agents, and the keys of providers."""


@pytest.fixture
def allowed(site: Site) -> Iterator[None]:
    """Let ada open more pages. Tests of later files expect her without these permissions."""
    site.do("allow", user="ada", permissions=MORE)
    yield
    site.do("disallow", user="ada", permissions=MORE)


COLOURS: tuple[Colours, ...] = ("light", "dark")
LOOKS: tuple[tuple[int, Colours], ...] = ((1280, "light"), (390, "dark"))


def look(page: Page, width: int, colours: Colours | None = None) -> None:
    """Change the width of the window and the preferred colours without a reload."""
    page.set_viewport_size({"width": width, "height": 900 if width > 600 else 844})
    if colours is not None:
        page.emulate_media(color_scheme=colours)
    # The admin animates the change of its colours.
    page.evaluate(
        "Promise.all(document.getAnimations().map((each) => each.finished)).then(() => 0)"
    )


def send_now(page: Page) -> None:
    """Send the decision that can still be undone."""
    page.get_by_role("button", name="Send now").click()


BELOW = "document.querySelector('.conversation').getBoundingClientRect().bottom - innerHeight"
"""How many pixels the end of a run's conversation is below the window."""


def overflow(page: Page) -> int:
    """Return how many pixels the page is wider than its window."""
    return int(
        page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    )


def shoot(page: Page, name: str) -> None:
    """Take a screenshot for people if `VEL_TEST_PICTURES` names a directory."""
    if directory := os.environ.get("VEL_TEST_PICTURES"):
        page.screenshot(path=Path(directory) / f"{name}.png", full_page=True)


def _is_refusal(error: str) -> bool:
    """Return whether the error is a refusal by the server, which the page shows to the user."""
    return "status of 400 (Bad Request)" in error or "status of 409 (Conflict)" in error


def _is_lost_connection(error: str) -> bool:
    """Return whether the error is a lost connection: tests stop servers."""
    return "net::ERR_" in error or error.startswith("WebSocket connection to")
