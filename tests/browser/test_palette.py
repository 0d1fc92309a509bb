"""The command palette with the keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NewPage
from tests.browser.test_every_page import LISTEN, serious
from tests.support.site import Site

pytestmark = pytest.mark.chromium


def test_ctrl_k_finds_a_conversation_and_enter_opens_it(site: Site, new_page: NewPage) -> None:
    site.do("make_user", name="seeker")
    site.do("make_run", owner="seeker", message="Snow")
    run = site.do("make_run", owner="seeker", message="<b>Rain</b> in <script>")
    page = new_page("seeker")
    page.add_init_script(LISTEN)
    page.goto("/usage/")
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox")
    expect(field).to_be_focused()
    expect(page.get_by_role("option", name="Usage")).to_be_visible()
    field.fill("rain")
    expect(page.get_by_role("option")).to_have_text(["<b>Rain</b> in <script>"])
    assert serious(page, ".palette") == []
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{run}/")
    assert page.evaluate("window.refused") == []


@pytest.mark.slow
def test_arrows_move_the_choice_and_escape_closes(site: Site, new_page: NewPage) -> None:
    page = new_page("olga")
    page.goto("/")
    page.keyboard.press("Control+k")
    options = page.locator(".palette").get_by_role("option")
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(options.last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.locator(".palette")).to_be_hidden()
