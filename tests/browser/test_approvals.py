"""Decisions on a run's page."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage, look, send_now
from tests.support.runs import wait_until
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


@pytest.mark.slow
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
    send_now(page)
    expect(page.locator(".approval")).to_have_count(0)
    expect(page.locator(".toast")).to_contain_text("Approved: execute.")
    expect(page.locator("#transcript")).to_contain_text("olga approved execute")
    stored = site.do("approval", request=request)
    assert (stored["decision"], stored["by"]) == ("approve", "olga")


@pytest.mark.slow
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
    send_now(page)
    expect(page.locator(".approval")).to_have_count(0)
    stored = site.do("approval", request=request)
    assert stored["edited_input"] == {"command": "echo ho", "account": 9_007_199_254_740_993}


@pytest.mark.slow
def test_rejecting_with_a_reason(site: Site, waiting: tuple[Page, str, str]) -> None:
    page, _, request = waiting
    page.get_by_text("Reject…", exact=True).click()
    page.get_by_label("Reason (the agent").fill("Not on a Friday")
    page.get_by_role("button", name="Reject", exact=True).click()
    send_now(page)
    expect(page.locator(".approval")).to_have_count(0)
    expect(page.locator("#transcript")).to_contain_text("olga rejected execute: Not on a Friday")
    stored = site.do("approval", request=request)
    assert (stored["decision"], stored["reason"]) == ("reject", "Not on a Friday")


@pytest.mark.slow
def test_answering_instead(site: Site, waiting: tuple[Page, str, str]) -> None:
    page, _, request = waiting
    page.get_by_text("Answer instead…", exact=True).click()
    page.get_by_role("button", name="Answer", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("An answer requires")
    page.get_by_label("The tool does not run").fill("It says hi")
    page.get_by_role("button", name="Answer", exact=True).click()
    send_now(page)
    expect(page.locator(".approval")).to_have_count(0)
    assert site.do("approval", request=request)["reason"] == "It says hi"


@pytest.mark.slow
def test_requests_decided_by_others_leave_the_page(
    site: Site, new_page: NewPage, waiting: tuple[Page, str, str]
) -> None:
    page, run, _ = waiting
    other = new_page("ada")
    other.goto(f"/runs/{run}/")
    other.get_by_role("button", name="Approve", exact=True).click()
    send_now(other)
    expect(page.locator(".approval")).to_have_count(0)
    expect(page.locator("#transcript")).to_contain_text("ada approved execute")


@pytest.mark.slow
def test_a_late_decision_is_reported(site: Site, waiting: tuple[Page, str, str]) -> None:
    page, _, request = waiting
    # The page does not update, as with a slow connection.
    page.route("**/summary/", lambda route: route.abort())
    page.evaluate("document.querySelector('.approval').scrollIntoView()")
    site.do("supersede", request=request)
    page.get_by_role("button", name="Approve", exact=True).click()
    send_now(page)
    expect(page.locator(".toast.problem")).to_contain_text("Not decided: execute. The request")
    expect(page.get_by_role("alert")).to_contain_text("superseded already")
    assert site.do("approval", request=request)["status"] == "superseded"


def status_of(site: Site, request: str) -> str:
    return str(site.do("approval", request=request)["status"])


@pytest.mark.slow
def test_an_approval_is_sent_after_the_time_to_undo(
    site: Site, waiting: tuple[Page, str, str]
) -> None:
    page, _, request = waiting
    page.clock.install()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("Approving: execute…")
    expect(page.locator(".approval")).to_be_hidden()
    page.clock.fast_forward(4900)
    assert status_of(site, request) == "pending"
    page.clock.fast_forward(200)
    expect(page.locator(".toast")).to_contain_text("Approved: execute.")
    assert status_of(site, request) == "decided"


@pytest.mark.slow_cases
@pytest.mark.parametrize("by_key", [False, True])
def test_an_undone_approval_is_never_sent(
    site: Site, waiting: tuple[Page, str, str], *, by_key: bool
) -> None:
    page, _, request = waiting
    posts: list[str] = []
    page.on("request", lambda sent: posts.append(sent.url) if sent.method == "POST" else None)
    page.clock.install()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".approval")).to_be_hidden()
    if by_key:
        page.keyboard.press("z")
    else:
        page.get_by_role("button", name="Undo").click()
    expect(page.locator(".approval")).to_be_visible()
    expect(page.locator(".approval")).to_be_focused()
    page.clock.fast_forward(10_000)
    page.reload()
    expect(page.locator(".approval")).to_be_visible()
    assert posts == []
    assert status_of(site, request) == "pending"


@pytest.mark.slow
def test_leaving_the_page_sends_the_decision(site: Site, waiting: tuple[Page, str, str]) -> None:
    page, _, request = waiting
    page.clock.install()
    with page.expect_request("**/decide/") as sent:
        page.get_by_role("button", name="Approve", exact=True).click()
        page.goto("/runs/")
    assert sent.value.method == "POST"
    wait_until(lambda: status_of(site, request) == "decided", "the decision")


def test_a_decision_without_a_server_is_given_back(
    site: Site, waiting: tuple[Page, str, str]
) -> None:
    page, _, request = waiting
    page.route("**/decide/", lambda route: route.abort())
    page.get_by_text("Reject…", exact=True).click()
    page.get_by_label("Reason (the agent").fill("Too late")
    page.get_by_role("button", name="Reject", exact=True).click()
    send_now(page)
    expect(page.locator(".toast.problem")).to_contain_text("Not decided: execute.")
    expect(page.locator(".toast")).to_have_count(1)
    expect(page.get_by_label("Reason (the agent")).to_have_value("Too late")
    assert status_of(site, request) == "pending"


def test_the_keys_decide_on_the_page_of_a_run(site: Site, waiting: tuple[Page, str, str]) -> None:
    page, _, request = waiting
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard")
    expect(dialog).to_contain_text("approve the request")
    page.keyboard.press("a")
    page.keyboard.press("Escape")
    expect(page.locator(".approval")).to_be_visible()
    page.keyboard.press("a")
    expect(page.locator(".approval")).to_be_focused()
    page.keyboard.press("a")
    expect(page.locator(".approval")).to_be_hidden()
    send_now(page)
    expect(page.locator(".approval")).to_have_count(0)
    assert site.do("approval", request=request)["decision"] == "approve"


@pytest.mark.slow
def test_the_buttons_of_a_long_request_stay_at_the_thumb(site: Site, new_page: NewPage) -> None:
    run = site.do("make_run", owner="olga")
    site.do("ask", run=run, tool="send", tool_input={"text": "line\n" * 200})
    page = new_page("olga", width=390, height=844)
    page.goto(f"/runs/{run}/")
    look(page, 390)
    page.locator(".approval h2").evaluate("title => title.scrollIntoView()")
    buttons = page.locator(".actions > form > button, .actions > .panel > summary")
    expect(buttons.first).to_be_in_viewport(ratio=1)
    boxes = [button.bounding_box() for button in buttons.all()]
    assert len(boxes) >= 3
    assert all(box is not None and box["height"] >= 44 and box["y"] > 422 for box in boxes)
    page.get_by_role("button", name="Approve", exact=True).click()
    for name in ("Undo", "Send now"):
        box = page.get_by_role("button", name=name).bounding_box()
        assert box is not None
        assert box["height"] >= 44
    send_now(page)
    expect(page.locator(".approval")).to_have_count(0)
