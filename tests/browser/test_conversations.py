"""The list of conversations: archiving with the time to undo it, and new titles."""

from __future__ import annotations

import json
import re
import secrets
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import NewPage
from tests.support.site import Site

pytestmark = pytest.mark.chromium


@pytest.fixture
def listed(site: Site, new_page: NewPage) -> tuple[Page, Locator]:
    """The list of a user with two conversations, and the row of the first one."""
    name = f"paula{secrets.token_hex(4)}"
    site.do("make_user", name=name)
    for title in ("Weather", "Water"):
        site.do("make_run", owner=name, message=title)
    page = new_page(name)
    page.goto("/conversations/")
    return page, page.locator(".conversation-list li", has_text="Weather")


def archive(row: Locator) -> None:
    row.locator("summary").click()
    row.get_by_role("button", name="Archive").click()
    expect(row).to_be_hidden()


def test_archiving_can_be_undone_before_it_is_sent(listed: tuple[Page, Locator]) -> None:
    page, row = listed
    archive(row)
    expect(page.locator(".toast")).to_contain_text("Archiving: Weather…")
    page.get_by_role("button", name="Undo").click()
    expect(row).to_be_visible()
    page.reload()
    expect(row).to_be_visible()


def test_a_conversation_is_exported_without_javascript(
    site: Site, new_page: NewPage, tmp_path: Path
) -> None:
    name = f"paula{secrets.token_hex(4)}"
    site.do("make_user", name=name)
    run = site.do("make_run", owner=name, message="Weather")
    page = new_page(name, scripts=False)
    page.goto(f"/runs/{run}/")
    for label, ending in (("Markdown", "md"), ("JSON", "json")):
        with page.expect_download() as started:
            page.get_by_role("link", name=f"Export as {label}").click()
        started.value.save_as(tmp_path / "file")
        assert re.fullmatch(rf"weather-[0-9-]+\.{ending}", started.value.suggested_filename)
        text = (tmp_path / "file").read_text()
        assert "> Weather\n" in text if ending == "md" else json.loads(text)["runs"][0]["id"] == run


@pytest.mark.slow
def test_leaving_the_list_archives_the_conversation(listed: tuple[Page, Locator]) -> None:
    page, row = listed
    archive(row)
    with page.expect_request(lambda sent: sent.method == "POST"):
        page.goto("/conversations/?archived=1")
    expect(page.locator("h1")).to_have_text("Archived conversations")
    page.reload()
    expect(row).to_be_visible()


@pytest.mark.slow
def test_a_refused_change_brings_the_conversation_back(listed: tuple[Page, Locator]) -> None:
    page, row = listed
    page.route("**/conversations/*/", lambda route: route.abort())
    archive(row)
    page.get_by_role("button", name="Close").click()
    expect(page.locator(".toast.problem")).to_contain_text("was not changed")
    expect(row).to_be_visible()


@pytest.mark.slow
def test_the_list_beside_a_run_shows_a_new_title_as_text_without_a_reload(
    site: Site, new_page: NewPage
) -> None:
    name = f"paula{secrets.token_hex(4)}"
    site.do("make_user", name=name)
    run = site.do("make_run", owner=name, message="Weather")
    page = new_page(name)
    page.goto(f"/runs/{run}/")
    row = page.locator(".conversations [data-thread]")
    expect(row).to_have_text("Weather")
    title = "<b onclick=alert(1)>Rain</b>"
    page.request.patch(
        f"/api/v1/threads/{row.get_attribute('data-thread')}",
        data={"title": title},
        headers={"authorization": f"Bearer {site.do('make_token', user=name, scopes=['run'])}"},
    )
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(row).to_have_text(title)
