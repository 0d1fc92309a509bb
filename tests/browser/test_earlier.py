"""The earlier messages of a conversation above a run, and the place where its page opens."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import BELOW, COLOURS, Colours, NewPage, look, overflow, shoot
from tests.browser.test_every_page import serious
from tests.support.site import Site

pytestmark = [pytest.mark.chromium, pytest.mark.slow]

ANSWER = """It **rains** until noon. <img src=x onerror="window.pwned = 1">

| Hour | Rain |
|------|-----:|
| 8    | 2 mm |
| 10   | 4 mm |

- Take an [umbrella](javascript:window.pwned=1)
- `cover` the bicycle\u202e

"""
TEXT = "A line of the answer.\n\n" * 60


def conversation(site: Site, count: int, *, last: str = "completed") -> list[str]:
    """Create ended runs of one conversation; the last one has this status and a long text."""
    runs: list[str] = []
    thread = None
    for number in range(1, count + 1):
        run = site.do("make_run", owner="olga", message=f"Message {number}", thread=thread)
        thread = site.do("run", run=run)["thread"]
        text = ANSWER if number < count else TEXT
        site.do("reply", run=run, text=text)
        events = [
            ("run.started", {}),
            ("tool.called", {"call_id": "c1", "tool": "read_file", "input": {"path": "a.txt"}}),
            ("tool.completed", {"call_id": "c1", "output": "x"}),
            ("text.completed", {"part_id": "2.0", "text": text}),
        ]
        status = "completed" if number < count else last
        if status == "completed":
            events.append(("run.completed", {"finish_reason": "end_turn"}))
        site.do("append", run=run, events=events, status=status)
        runs.append(run)
    return runs


def opened(site: Site, page: Page, run: str, place: str = "") -> None:
    page.goto(f"/runs/{run}/{place}")
    expect(page.locator("#run")).to_have_attribute("data-seq", str(site.do("run", run=run)["seq"]))
    page.wait_for_timeout(500)  # nothing may scroll now


def top(page: Page, selector: str) -> float:
    box = page.locator(selector).bounding_box()
    assert box is not None
    return box["y"]


OWN = ".conversation > .asked"


def test_the_page_of_an_ended_run_opens_at_its_message(site: Site, new_page: NewPage) -> None:
    runs = conversation(site, 25)
    page = new_page("olga")
    opened(site, page, runs[-1])
    assert 40 < top(page, OWN) < 120
    expect(page.locator(".earlier article")).to_have_count(20)
    expect(page.locator(".earlier td").first).to_have_text("8")
    expect(page.locator(".earlier .said img")).to_have_count(0)
    expect(page.locator(".earlier .code-point").first).to_have_text("⟨U+202E⟩")
    assert page.evaluate("window.pwned") is None

    page.get_by_role("link", name="Show earlier messages").click()
    expect(page.locator(".earlier article")).to_have_count(24)
    page.wait_for_timeout(500)
    assert 40 < top(page, f"#earlier-{runs[4]}") < 120

    page.locator(f"#earlier-{runs[0]}").get_by_role("link", name="Show the steps").click()
    page.get_by_role("link", name="Next message").click()
    expect(page.locator(OWN)).to_have_text("Message 2")
    page.get_by_role("link", name="Newest message").click()
    expect(page.locator(OWN)).to_have_text("Message 25")


def test_a_link_to_a_call_and_a_running_transcript_keep_their_places(
    site: Site, new_page: NewPage
) -> None:
    runs = conversation(site, 3, last="running")
    page = new_page("olga")
    opened(site, page, runs[-1])
    at_end = f"{BELOW} <= 0"
    assert page.evaluate(at_end)
    more = [("text.completed", {"part_id": "3.0", "text": TEXT})]
    seq = site.do("append", run=runs[-1], events=more)
    expect(page.locator("#run")).to_have_attribute("data-seq", str(seq))
    page.wait_for_function(at_end)

    page.mouse.wheel(0, -900)
    page.wait_for_timeout(300)
    before = top(page, OWN)
    seq = site.do("append", run=runs[-1], events=more)
    expect(page.locator("#run")).to_have_attribute("data-seq", str(seq))
    page.wait_for_timeout(300)
    assert top(page, OWN) == before

    opened(site, page, runs[-1], "?#call=c1")
    expect(page.locator(".linked")).to_be_in_viewport()


@pytest.mark.parametrize("colours", COLOURS)
@pytest.mark.parametrize("width", [1280, 390])
def test_the_earlier_messages_fit(
    site: Site, new_page: NewPage, width: int, colours: Colours
) -> None:
    runs = conversation(site, 3)
    site.do("keep", run=runs[0], value={"mm": [2, 4], "note": "x" * 300}, files=["y" * 200])
    page = new_page("olga")
    look(page, width, colours)
    opened(site, page, runs[-1])
    assert overflow(page) <= 0
    for fold in page.locator(".earlier details").all():
        fold.evaluate("fold => { fold.open = true; }")
    assert serious(page) == []
    page.locator(".earlier article").first.scroll_into_view_if_needed()
    shoot(page, f"earlier-{width}-{colours}")
    opened(site, page, runs[1])
    assert serious(page) == []
    shoot(page, f"later-{width}-{colours}")
