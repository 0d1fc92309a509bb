"""Pages of PDF files in a browser: with and without scripts, wide and narrow, light and dark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import LOOKS, look, overflow, shoot
from tests.browser.test_every_page import LISTEN, serious
from tests.support.documents import documents_data
from tests.support.hang import HANG
from tests.support.pdfs import pages_pdf
from tests.support.site import Site, migrated_site

pytestmark = [pytest.mark.chromium, pytest.mark.bubblewrap, pytest.mark.timeout(6 * HANG)]


@pytest.fixture(scope="module")
def reading_site() -> Iterator[Site]:
    """Serve a site that has the toolbox of documents, in a directory that sandboxes can reach."""
    toolboxes = documents_data() / "toolboxes"
    directory = Path(os.environ["VEL_DATA_DIR"]) / "reading-site"
    directory.mkdir(mode=0o711)
    (directory / "toolboxes").symlink_to(toolboxes.resolve())
    site = migrated_site(directory, os.environ.get("VEL_TEST_DATABASE_URL", ""))
    try:
        site.do("make_user", name="olga")
        site.start_server()
        yield site
    finally:
        site.close()


@pytest.fixture(scope="module")
def run(reading_site: Site) -> str:
    """Create a run with a book of 12 pages, and one of which only the first page exists."""
    run: str = reading_site.do("make_run", owner="olga", message="Write a book")
    thread = reading_site.do("run", run=run)["thread"]
    outputs = reading_site.directory / "workspaces" / thread / "outputs"
    outputs.mkdir(parents=True)
    (outputs / "book.pdf").write_bytes(pages_pdf(12))
    (outputs / "cut.pdf").write_bytes(pages_pdf(1).replace(b"/Count 1", b"/Count 3"))
    return run


@pytest.fixture
def olga(browser: Browser, reading_site: Site) -> Iterator[BrowserContext]:
    with signed_in(browser, reading_site, scripts=True) as context:
        yield context


def signed_in(browser: Browser, site: Site, *, scripts: bool) -> BrowserContext:
    context = browser.new_context(
        base_url=site.url,
        java_script_enabled=scripts,
        reduced_motion="reduce",
        viewport={"width": 1280, "height": 900},
    )
    key = site.do("sign_in", user="olga")
    context.add_cookies([{"name": "sessionid", "value": key, "url": site.url}])
    return context


def open_file(page: Page, run: str, name: str) -> None:
    page.goto(f"/runs/{run}/browse/?path=/sandbox/outputs/{name}")


def test_the_pages_of_a_pdf_fit_and_are_readable(olga: BrowserContext, run: str) -> None:
    wrong: list[str] = []
    page = olga.new_page()
    page.add_init_script(LISTEN)
    open_file(page, run, "book.pdf")
    for number in (1, 2, 10):
        image = page.get_by_role("img", name=f"Page {number} of 12")
        image.scroll_into_view_if_needed()
        expect(image).to_have_js_property("naturalWidth", 1131)
    for width, colours in [*LOOKS, (1280, "dark"), (390, "light")]:
        look(page, width, colours)
        shoot(page, f"pdf-{width}-{colours}")
        if overflow(page) > 0:
            wrong.append(f"at {width} it scrolls sideways")
        wrong += serious(page)
    wrong += page.evaluate("window.refused")
    assert wrong == []
    page.get_by_role("link", name="Show more pages").click()
    expect(page.get_by_role("img", name="Page 12 of 12")).to_have_count(1)
    expect(page.get_by_role("img", name="Page 11 of 12")).to_be_in_viewport()
    expect(page.get_by_role("img", name="Page 11 of 12")).to_have_js_property("naturalWidth", 1131)
    page.get_by_role("link", name="Show the text").click()
    expect(page.locator("#markdown")).to_contain_text("Chapter 12")


def test_a_page_without_a_picture_gives_the_reason(olga: BrowserContext, run: str) -> None:
    page = olga.new_page()
    open_file(page, run, "cut.pdf")
    expect(page.get_by_role("img", name="Page 1 of 3")).to_have_js_property("naturalWidth", 1131)
    for number in (2, 3):
        line = page.locator(f"#page-{number} .note")
        line.scroll_into_view_if_needed()
        expect(line).to_have_text(f"Page {number} of 3 cannot be shown: it is damaged.")
    shoot(page, "pdf-cut")


def test_pages_are_shown_without_scripts(browser: Browser, reading_site: Site, run: str) -> None:
    with signed_in(browser, reading_site, scripts=False) as context:
        page = context.new_page()
        with page.expect_response(lambda answer: "number=1" in answer.url) as shown:
            open_file(page, run, "book.pdf")
        assert shown.value.headers["content-type"] == "image/png"
        expect(page.get_by_role("link", name="Show more pages")).to_be_visible()


def test_a_run_shows_the_first_page_which_leads_to_all(olga: BrowserContext, run: str) -> None:
    page = olga.new_page()
    page.goto(f"/runs/{run}/")
    first = page.get_by_role("img", name="First page of book.pdf")
    first.scroll_into_view_if_needed()
    expect(first).to_have_js_property("naturalWidth", 1131)
    shoot(page, "pdf-run")
    first.click()
    expect(page.get_by_role("img", name="Page 1 of 12")).to_have_js_property("naturalWidth", 1131)
