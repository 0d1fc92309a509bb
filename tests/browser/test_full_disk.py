"""The page of a run while it waits for disk space."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Contexts
from tests.velproject.full_disk_doors import RESERVE, served_on_a_small_disk

pytestmark = [pytest.mark.chromium, pytest.mark.bubblewrap]

WAITS = "This run waits for disk space: the disk of the data directory is full"


@pytest.mark.slow
def test_an_open_page_shows_the_wait_and_its_end(browser: Browser, tmp_path: Path) -> None:
    with (
        served_on_a_small_disk(tmp_path, RESERVE) as served,
        Contexts(browser, served.site.url).one(scripts=True) as context,
    ):
        cookie = {"name": "sessionid", "value": served.session, "url": served.site.url}
        context.add_cookies([cookie])  # type: ignore[list-item]  # a TypedDict
        page = context.new_page()
        page.clock.install()
        page.goto(f"/runs/{served.run}/")
        note = page.locator("#note")
        expect(page.locator("#tokens")).to_have_text("0")
        expect(note).to_be_hidden()

        def after_a_while() -> None:
            with page.expect_response("**/summary/"):
                page.clock.fast_forward(16_000)

        served.disk.fill(leaving=RESERVE // 8)
        while not note.is_visible():
            after_a_while()
        expect(note).to_contain_text(WAITS)
        served.disk.clear()
        while note.is_visible():
            after_a_while()
