"""Decisions on a run's page."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage
from tests.support.site import Site

pytestmark = pytest.mark.chromium

INPUT = {"command": "echo hi", "account": 9_007_199_254_740_993, "note": "a\u202eb"}


@pytest.fixture
def waiting(site: Site, new_page: NewPage) -> tuple[Page, str, str]:
    """Olga's page of a run that has just started to wait, the run and its request."""
    run = site.do("make_run", owner="olga")
    page = new_page("olga")
    page.goto(f"/runs/{run}/")
    request = site.do("ask", run=run, tool="execute", tool_input=INPUT)
    page.locator(f"[data-approval='{request}']").wait_for()
    return page, run, request


def test_a_request_appears_with_all_that_it_asks(waiting: tuple[Page, str, str]) -> None:
    page, _, _ = waiting
    card = page.locator(".approval")
    expect(card.get_by_role("heading", level=2)).to_have_text("Allow execute?")
    expect(card.locator("pre")).to_have_text(["echo hi", "9007199254740993", "a⟨U+202E⟩b"])
    expect(page.locator("#transcript details .status")).to_have_text("waiting")
    expect(page).to_have_title("● Waiting for you · Hello · Vel")


def test_approving(site: Site, waiting: tuple[Page, str, str]) -> None:
    page, _, request = waiting
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".approval")).to_have_count(0)
    expect(page.locator("#transcript")).to_contain_text("olga approved execute")
    stored = site.do("approval", request=request)
    assert (stored["decision"], stored["by"]) == ("approve", "olga")


def test_editing_sends_exactly_the_typed_text(site: Site, waiting: tuple[Page, str, str]) -> None:
    page, _, request = waiting
    page.get_by_text("Edit…", exact=True).click()
    area = page.get_by_label("Input to run instead")
    assert "\\u202e" in area.input_value()
    area.fill('{"command": ')
    page.get_by_role("button", name="Run with these changes").click()
    expect(page.get_by_role("alert")).to_contain_text("This is not JSON")
    area.fill('{"command": "echo ho", "account": 9007199254740993}')
    page.get_by_role("button", name="Run with these changes").click()
    expect(page.locator(".approval")).to_have_count(0)
    stored = site.do("approval", request=request)
    assert stored["edited_input"] == {"command": "echo ho", "account": 9_007_199_254_740_993}


def test_rejecting_with_a_reason(site: Site, waiting: tuple[Page, str, str]) -> None:
    page, _, request = waiting
    page.get_by_text("Reject…", exact=True).click()
    page.get_by_label("Reason (the agent").fill("Not on a Friday")
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.locator(".approval")).to_have_count(0)
    expect(page.locator("#transcript")).to_contain_text("olga rejected execute: Not on a Friday")
    stored = site.do("approval", request=request)
    assert (stored["decision"], stored["reason"]) == ("reject", "Not on a Friday")


def test_answering_instead(site: Site, waiting: tuple[Page, str, str]) -> None:
    page, _, request = waiting
    page.get_by_text("Answer instead…", exact=True).click()
    page.get_by_role("button", name="Answer", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("An answer requires")
    page.get_by_label("The tool does not run").fill("It says hi")
    page.get_by_role("button", name="Answer", exact=True).click()
    expect(page.locator(".approval")).to_have_count(0)
    assert site.do("approval", request=request)["reason"] == "It says hi"


def test_requests_decided_by_others_leave_the_page(
    site: Site, new_page: NewPage, waiting: tuple[Page, str, str]
) -> None:
    page, run, _ = waiting
    other = new_page("ada")
    other.goto(f"/runs/{run}/")
    other.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".approval")).to_have_count(0)
    expect(page.locator("#transcript")).to_contain_text("ada approved execute")


def test_a_late_decision_is_reported(site: Site, waiting: tuple[Page, str, str]) -> None:
    page, _, request = waiting
    # The page does not update, as with a slow connection.
    page.route("**/summary/", lambda route: route.abort())
    page.evaluate("document.querySelector('.approval').scrollIntoView()")
    site.do("supersede", request=request)
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("superseded already")
    assert site.do("approval", request=request)["status"] == "superseded"
