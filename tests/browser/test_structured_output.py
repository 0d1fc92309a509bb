"""Structured output on a run's page."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NewPage
from tests.browser.test_live_run import append, transcript, wait_for_seq
from tests.support.site import Site

pytestmark = pytest.mark.chromium


@pytest.mark.slow
def test_the_value_and_its_problems_are_text_on_the_page(site: Site, new_page: NewPage) -> None:
    run = site.do("make_run", owner="olga")
    problems = [
        {"path": "$.n", "message": 'must be of type integer, got "<img src=x onerror=alert(1)>"'},
        {"path": "", "message": "The answer is\u202e empty."},
    ]
    value = {"n": 3, "s": "<b>bold</b>\u202e", "list": [None, True]}
    events = [
        ("output.invalid", {"attempt": 1, "problems": problems}),
        ("run.completed", {"finish_reason": "end_turn", "structured_output": value}),
    ]
    seq = append(site, run, events)
    page = new_page("olga")
    page.goto(f"/runs/{run}/")
    wait_for_seq(page, seq)
    shown = transcript(page)
    assert "The answer does not match its schema: $.n: must be of type integer" in shown
    assert '"<img src=x onerror=alert(1)>"; The answer is⟨U+202E⟩ empty.' in shown
    expect(page.get_by_text("Answer as data")).to_be_visible()
    assert '"s": "<b>bold</b>⟨U+202E⟩"' in shown
    assert page.locator("#transcript img, #transcript b").count() == 0
