"""The page of a run that has delegated: the tree, each stream, and approval requests."""

from __future__ import annotations

import time
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage, send_now
from tests.support.hang import HANG
from tests.support.site import Site

pytestmark = pytest.mark.chromium

TASKS = ("Look for the tests", "Read the docs\u202e", "Count the lines")


def began(site: Site, run: str) -> None:
    started: list[tuple[str, dict[str, Any]]] = [("run.started", {}), ("step.started", {"step": 1})]
    site.do("append", run=run, events=started, status="running")


def delegated(site: Site, *tasks: str) -> tuple[str, list[str]]:
    """Create a run of olga that waits for subagents, and return their IDs in order."""
    run = site.do("make_run", owner="olga", message="Survey the project")
    began(site, run)
    children = [site.do("make_child", parent=run, task=task) for task in tasks]
    site.do("park", run=run, children=children)
    return run, children


def said(text: str) -> tuple[str, dict[str, Any]]:
    return ("text.completed", {"part_id": "1.0", "text": text})


def fold(page: Page, run: str) -> Any:
    return page.locator(f'details.subagent[data-run="{run}"]')


def count_sockets(page: Page) -> list[str]:
    """Record the URLs of the page's open sockets to runs."""
    urls: list[str] = []
    page.on("websocket", lambda socket: _note(urls, socket))
    return urls


def _note(urls: list[str], socket: Any) -> None:
    if "/ws/runs/" in socket.url:
        urls.append(socket.url)
        socket.on("close", lambda _: urls.remove(socket.url))


def wait_for_sockets(page: Page, sockets: list[str], count: int) -> None:
    deadline = time.monotonic() + HANG
    while len(sockets) != count:
        assert time.monotonic() < deadline, sockets
        page.evaluate("1")  # Playwright delivers events only during calls


def wait_for_all(page: Page, seq: int, ends: list[str]) -> None:
    """Wait until the page has the last event of the run, and the end of each subagent."""
    expect(page.locator("#run")).to_have_attribute("data-seq", str(seq))
    expect(page.locator("#subagents .status")).to_have_text(ends)


def test_the_page_shows_the_tree_while_it_grows_and_ends(site: Site, new_page: NewPage) -> None:
    run, (first, second, third) = delegated(site, *TASKS)
    page = new_page("olga")
    sockets = count_sockets(page)
    page.goto(f"/runs/{run}/")
    waits = page.locator("#waits")
    expect(waits).to_have_text("Waiting for 3 subagents: 3 queued")
    names = page.locator("#subagents a")
    expect(names).to_have_text(["explore", "explore 2", "explore 3"])
    expect(page.locator("#subagents .task").nth(1)).to_have_text("Read the docs⟨U+202E⟩")
    began(site, first)
    expect(waits).to_have_text("Waiting for 3 subagents: 1 running, 2 queued")
    deeper = site.do("make_child", parent=first, task="Go deeper", name="plan")
    site.do("park", run=first, children=[deeper])
    expect(page.locator("#subagents li li a")).to_have_text("plan")
    expect(fold(page, first).locator("summary .status")).to_have_text("waiting for subagents")
    assert len(sockets) == 1, "the folded ones are followed over the page's own socket"
    site.do("end", run=second, status="completed", events=[said("Read.")])
    site.do("end", run=third, status="failed", events=[])
    expect(waits).to_have_text("Waiting for 1 subagent: 1 waiting for subagents")
    expect(fold(page, third).locator("summary .status")).to_have_text("failed")
    site.do("end", run=deeper, status="completed", events=[said("Planned.")])
    site.do("end", run=first, status="completed", events=[said("Found.")])
    ends = ["completed", "completed", "completed", "failed"]  # in the order of a tree
    seq = site.do("run", run=run)["seq"]
    wait_for_all(page, seq, ends)
    expect(waits).to_be_hidden()
    before = page.locator("#transcript").inner_text()
    tree = page.locator("#subagents").inner_text()
    page.reload()
    wait_for_all(page, seq, ends)
    assert page.locator("#transcript").inner_text() == before
    assert page.locator("#subagents").inner_text() == tree


@pytest.mark.slow
def test_an_opened_subagent_is_followed_and_one_in_it_too(site: Site, new_page: NewPage) -> None:
    run, (child,) = delegated(site, "Look for the tests")
    page = new_page("olga")
    sockets = count_sockets(page)
    page.goto(f"/runs/{run}/")
    page.locator("details.subagent > summary").focus()
    page.keyboard.press("Enter")
    began(site, child)
    site.do("append", run=child, events=[said("I see <b>tests</b>\u200b.")])
    expect(fold(page, child).locator(".said")).to_have_text("I see <b>tests</b>⟨U+200B⟩.")
    deeper = site.do("make_child", parent=child, task="Deeper", name="plan")
    site.do("append", run=deeper, events=[said("Deep.")])
    fold(page, deeper).locator("> summary").click()
    expect(fold(page, deeper).locator(".said")).to_have_text("Deep.")
    assert len(sockets) == 3
    fold(page, child).locator("> summary").first.click()
    site.do("append", run=child, events=[("text.completed", {"part_id": "2.0", "text": "More."})])
    fold(page, child).locator("> summary").first.click()
    expect(fold(page, child).locator("> .inside > .transcript > div > .said")).to_have_text(
        ["I see <b>tests</b>⟨U+200B⟩.", "More."]
    )
    site.do("end", run=deeper, status="completed", events=[])
    site.do("end", run=child, status="completed", events=[])
    expect(fold(page, child).locator("summary .status").first).to_have_text("completed")
    wait_for_sockets(page, sockets, 1)  # ended runs need no socket
    fold(page, child).get_by_role("link", name="Open the run of explore").click()
    expect(page.locator(".above")).to_have_text("Assistant › explore")
    expect(page.get_by_label("Follow-up message")).to_have_count(0)
    page.get_by_role("link", name="Assistant", exact=True).click()
    expect(page.locator("h1")).to_have_text("Survey the project")


@pytest.mark.slow
def test_requests_of_a_subagent_are_decided_on_the_page_of_its_parent(
    site: Site, new_page: NewPage
) -> None:
    run, (child,) = delegated(site, "Tidy up")
    page = new_page("olga")
    page.goto(f"/runs/{run}/")
    began(site, child)
    request = site.do("ask", run=child, tool="execute", tool_input={"command": "rm -r build"})
    card = page.locator(f"#request-{request}")
    expect(card).to_contain_text("Assistant › explore")
    expect(page.locator("#waits")).to_have_text("Waiting for 1 subagent: 1 waiting for a decision")
    expect(card.get_by_role("link", name="Open the run")).to_have_attribute(
        "href", f"/runs/{child}/"
    )
    card.get_by_role("button", name="Approve").click()
    send_now(page)
    expect(card).to_have_count(0)
    assert site.do("approval", request=request)["decision"] == "approve"
    page.goto("/approvals/?tab=decided")
    expect(page.get_by_text("Assistant › explore").first).to_be_visible()


@pytest.mark.slow
def test_on_a_narrow_screen_nothing_is_wider_than_the_page(site: Site, new_page: NewPage) -> None:
    run, children = delegated(site, "x" * 300, "Read all of the documentation, and more than that")
    began(site, children[0])
    site.do("append", run=children[0], events=[said("y" * 500)])
    page = new_page("olga", width=390, height=800)
    page.goto(f"/runs/{run}/")
    fold(page, children[0]).locator("> summary").click()
    expect(fold(page, children[0]).locator(".said")).to_contain_text("yyy")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.slow
def test_the_history_shows_runs_of_people_and_no_subagents(site: Site, new_page: NewPage) -> None:
    run, (child,) = delegated(site, "Only below its parent")
    page = new_page("olga")
    page.goto("/runs/")
    expect(page.locator(f'a[href="/runs/{run}/"]')).to_have_count(1)
    expect(page.locator(f'a[href="/runs/{child}/"]')).to_have_count(0)
