"""What the page of a conversation costs: bytes of scripts, first paint, scrolling.

Bytes are limits. Times depend on the machine, so they are only printed:
`pytest -s -m slow tests/browser/test_page_budgets.py`.
"""

from __future__ import annotations

import gzip
from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage
from tests.browser.test_transcript import reading, said, shown
from tests.support.site import Site

pytestmark = pytest.mark.chromium

SCRIPTS = """performance.getEntriesByType("resource")
    .filter((entry) => entry.name.split("?")[0].endsWith(".js"))
    .map((entry) => entry.name)"""
MOST_SCRIPT_BYTES = 150_000
"""Compressed, as a proxy sends them."""
STEPS = 2_000
SLOWER = 4
"""The processor looks as many times slower to the page, as on a phone."""

PAINTED = """() => new Promise((resolve) => {
    const found = (list) => list.getEntriesByName("first-contentful-paint")
        .forEach((entry) => resolve(entry.startTime));
    new PerformanceObserver(found).observe({ type: "paint", buffered: true });
})"""
FRAMES = """async (frames) => {
    const box = document.scrollingElement;
    const far = box.scrollHeight - box.clientHeight;
    const times = [];
    for (let frame = 0; frame <= frames; frame += 1) {
        box.scrollTop = (far * frame) / frames;
        times.push(await new Promise(requestAnimationFrame));
    }
    return times;
}"""


def long_run(site: Site, new_page: NewPage) -> Page:
    steps = [event for number in range(STEPS // 4) for event in _four_steps(number * 4)]
    return shown(site, new_page, steps, "completed")


def _four_steps(first: int) -> list[tuple[str, dict[str, object]]]:
    text = {"part_id": f"{first}.0", "text": f"Part {first} is **read**."}
    return [
        *reading(first, first + 1, first + 2, first + 3),
        ("text.completed", text),
    ]


def slow_down(page: Page, rate: int) -> None:
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": rate})


def test_the_page_of_a_conversation_needs_few_compressed_scripts(
    site: Site, new_page: NewPage
) -> None:
    text = "```python\nprint(1)\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    page = shown(site, new_page, [*reading(1, 2, 3), *said(text)], "completed")
    expect(page.locator("#transcript pre code span").first).to_be_attached()
    loaded = page.evaluate(SCRIPTS)
    sizes = {name: len(gzip.compress(page.request.get(name).body())) for name in loaded}
    assert sum(sizes.values()) <= MOST_SCRIPT_BYTES, sizes


@pytest.mark.slow
def test_a_transcript_of_many_steps_paints_early_and_scrolls(site: Site, new_page: NewPage) -> None:
    page = long_run(site, new_page)
    last = page.locator("#run").get_attribute("data-seq") or ""
    slow_down(page, SLOWER)
    page.reload()
    expect(page.locator("#run")).to_have_attribute("data-seq", last)
    assert page.locator("#transcript > details.group").count() == STEPS // 4
    paint = page.evaluate(PAINTED)
    slow_down(page, 1)
    times = page.evaluate(FRAMES, 600)
    lasted = [later - earlier for earlier, later in pairwise(times)]
    per_second = 1000 * len(lasted) / sum(lasted)
    print(
        f"\n{STEPS} steps: first paint after {paint:.0f} ms on a processor {SLOWER} times slower; "
        f"{per_second:.0f} frames a second, {sum(each > 40 for each in lasted)} of {len(lasted)} "
        f"frames took more than 40 ms, the longest {max(lasted):.0f} ms"
    )
