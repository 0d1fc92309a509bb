"""Every page of the admin in a real browser, which reports violations of the policy."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage
from tests.browser.test_every_page import LISTEN, prepared
from tests.support.every_address import addresses
from tests.support.hang import HANG
from tests.support.site import Site

pytestmark = [pytest.mark.chromium, pytest.mark.timeout(6 * HANG)]

LINKS = """
[...document.querySelectorAll("#content a[href], .object-tools a[href]")]
    .map((link) => new URL(link.href))
    .filter((url) => url.origin === location.origin && url.pathname.startsWith("/admin/"))
    .map((url) => url.pathname)
"""
EACH = re.compile(r"/(?:[0-9]+|[0-9a-z]{26}|[0-9a-f-]{36})(?=/|$)")
"""The part of an address that identifies a row: one row of each kind is tested."""


def visit(page: Page, path: str) -> list[str]:
    """Open a page and return its violations of the policy."""
    answer = page.goto(path)
    assert answer is not None
    policy = answer.headers.get("content-security-policy", "")
    assert policy.startswith("default-src 'self'"), path
    assert "unsafe" not in policy, path
    return [f"{path}: {text}" for text in page.evaluate("window.refused")]


@pytest.mark.slow
def test_the_policy_refuses_nothing_on_the_pages_of_the_admin(
    site: Site, new_page: NewPage
) -> None:
    prepared(site)
    site.do("make_user", name="governor", admin=True)
    page = new_page("governor")
    page.add_init_script(LISTEN)
    wrong: list[str] = []
    waiting = [
        each.path
        for each in addresses()
        if each.path.startswith("/admin/")
        and not each.arguments
        and "logout" not in each.path
        and not each.path.endswith("/csv/")
    ]
    seen = {EACH.sub("/#", path) for path in waiting}
    visited = 0
    while waiting:
        path = waiting.pop(0)
        answer = page.request.get(path, max_redirects=0)
        if answer.status != 200 or "text/html" not in answer.headers["content-type"]:
            continue
        wrong += visit(page, path)
        visited += 1
        for link in page.evaluate(LINKS):
            kind = EACH.sub("/#", link)
            if kind not in seen and "logout" not in link:
                seen.add(kind)
                waiting.append(link)
    assert wrong == []
    assert visited > 60


@pytest.mark.slow
def test_the_scripts_of_the_admin_work_under_the_policy(site: Site, new_page: NewPage) -> None:
    site.do("make_user", name="mayor", admin=True)
    page = new_page("mayor")
    page.add_init_script(LISTEN)
    page.goto("/admin/auth/user/add/")
    page.goto("/admin/auth/user/")
    page.get_by_role("link", name="mayor").click()
    page.locator("#id_user_permissions_from option").first.click()
    page.locator(".selector-add").last.click()
    expect(page.locator("#id_user_permissions_to option")).to_have_count(1)
    page.locator(".datetimeshortcuts a").first.click()
    page.locator(".clock-icon").first.click()
    expect(page.locator(".clockbox").first).to_be_visible()
    page.keyboard.press("Escape")
    page.locator(".date-icon").first.click()
    expect(page.locator(".calendarbox").first).to_be_visible()
    assert page.evaluate("window.refused") == []
