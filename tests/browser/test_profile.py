"""The profile and the API's page in a real browser, under their strict policies."""

from __future__ import annotations

import os
import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage

pytestmark = pytest.mark.chromium

SECRET = re.compile(r"vel_\S{40,}")


def shoot(page: Page, name: str) -> None:
    """A picture for people, where `VEL_TEST_PICTURES` names a directory."""
    if directory := os.environ.get("VEL_TEST_PICTURES"):
        page.screenshot(path=f"{directory}/{name}.png")


def is_as_wide_as_the_window(page: Page) -> bool:
    width, window = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    return bool(width <= window)


@pytest.mark.parametrize("width", [1280, 390])
def test_a_token_is_made_shown_once_and_revoked(width: int, new_page: NewPage) -> None:
    page = new_page("olga", width=width)
    page.goto("/")
    page.get_by_label("Menu of olga").click()
    page.get_by_role("link", name="Profile").click()
    page.get_by_label("Name").fill(f"backup {width}")
    page.get_by_label("decide approvals").check()
    page.get_by_role("button", name="Make a token").click()
    secret = page.get_by_label("Token", exact=True)
    expect(secret).to_have_value(SECRET)
    assert is_as_wide_as_the_window(page)
    shoot(page, f"profile-{width}")
    value = secret.input_value()
    answer = page.request.get("/api/v1/runs", headers={"Authorization": f"Token {value}"})
    assert answer.status == 200
    page.goto("/profile/")
    assert value not in page.content()
    page.get_by_role("button", name=f"Revoke backup {width}").click()
    expect(page.get_by_role("alert")).to_contain_text("is revoked")
    answer = page.request.get("/api/v1/runs", headers={"Authorization": f"Token {value}"})
    assert answer.status == 401


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_of_the_api_is_styled_and_can_be_walked(width: int, new_page: NewPage) -> None:
    page = new_page("olga", width=width)
    page.goto("/profile/")
    page.get_by_role("link", name="What the API does").click()
    page.get_by_role("link", name="Start a run").click()
    article = page.locator("#create_run")
    expect(article).to_be_in_viewport()
    article.get_by_text("Example").first.click()
    expect(article.locator("pre").first).to_be_visible()
    assert article.evaluate("each => getComputedStyle(each).borderRadius") == "8px"
    assert is_as_wide_as_the_window(page)
    shoot(page, f"api-docs-{width}")
