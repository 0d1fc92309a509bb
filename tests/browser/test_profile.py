"""The profile and the API's page in a real browser, under their strict policies."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage, look, overflow, shoot

pytestmark = pytest.mark.chromium

SECRET = re.compile(r"vel_\S{40,}")


def assert_that_it_fits(page: Page, name: str) -> None:
    """Check that the page fits on a narrow screen. The window keeps that width."""
    for width in (1280, 390):
        look(page, width)
        assert overflow(page) == 0, width
        shoot(page, f"{name}-{width}")


@pytest.mark.slow
def test_a_token_is_made_shown_once_and_revoked(new_page: NewPage) -> None:
    page = new_page("olga", width=390)
    page.goto("/")
    page.get_by_label("Menu of olga").click()
    page.get_by_role("link", name="Profile").click()
    page.get_by_label("Name").fill("backup")
    page.get_by_label("decide approval requests").check()
    page.get_by_role("button", name="Create token").click()
    secret = page.get_by_label("Token", exact=True)
    expect(secret).to_have_value(SECRET)
    assert_that_it_fits(page, "profile")
    value = secret.input_value()
    answer = page.request.get("/api/v1/runs", headers={"Authorization": f"Token {value}"})
    assert answer.status == 200
    page.goto("/profile/")
    assert value not in page.content()
    page.get_by_role("button", name="Revoke backup").click()
    expect(page.get_by_role("alert")).to_contain_text("is revoked")
    answer = page.request.get("/api/v1/runs", headers={"Authorization": f"Token {value}"})
    assert answer.status == 401


@pytest.mark.slow
def test_the_page_of_the_api_is_styled_and_can_be_walked(new_page: NewPage) -> None:
    page = new_page("olga", width=390)
    page.goto("/profile/")
    page.get_by_role("link", name="API reference").click()
    page.get_by_role("link", name="Start a run").click()
    article = page.locator("#create_run")
    expect(article).to_be_in_viewport()
    article.get_by_text("Example").first.click()
    expect(article.locator("pre").first).to_be_visible()
    assert article.evaluate("each => getComputedStyle(each).borderRadius") == "8px"
    assert_that_it_fits(page, "api-docs")
