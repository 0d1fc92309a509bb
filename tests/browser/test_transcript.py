"""The transcript: grouped calls, code, and links to its places."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage
from tests.support.site import Site

pytestmark = pytest.mark.chromium

Events = list[tuple[str, dict[str, Any]]]

CODE = """Look:

```python
def rain(day):
    return "wet\u202e" if day else 2
```

```nosuch
<b>plain</b>
```
"""


def call(number: int, tool: str, end: str = "tool.completed", **data: Any) -> Events:
    of = {"call_id": f"c{number}"}
    called = {**of, "tool": tool, "input": data.pop("input", {"path": f"{number}.txt"})}
    return [("tool.called", called), ("tool.started", of), (end, {**of, **data})]


def reading(*numbers: int) -> Events:
    return [event for number in numbers for event in call(number, "read_file", output="x")]


def shown(site: Site, new_page: NewPage, events: Events, status: str, place: str = "") -> Page:
    run = site.do("make_run", owner="olga", message="Look around")
    last = site.do("append", run=run, events=[("run.started", {}), *events], status=status)
    page = new_page("olga")
    page.goto(f"/runs/{run}/{place}")
    expect(page.locator("#run")).to_have_attribute("data-seq", str(last))
    return page


def group(page: Page) -> Any:
    return page.locator("#transcript > details.group")


def said(text: str) -> Events:
    return [("text.completed", {"part_id": "9.0", "text": text})]


def test_three_calls_without_a_text_between_them_become_one_line(
    site: Site, new_page: NewPage
) -> None:
    events = [
        *reading(1, 2),
        *call(3, "execute", "tool.failed", message="exit code 1", input={"command": "false"}),
        *said("Two files."),
        *reading(4, 5),
    ]
    page = shown(site, new_page, events, "completed")
    expect(group(page)).to_have_count(1)
    expect(group(page).locator("> summary")).to_have_text("Read 2 files, ran a command1 failed")
    expect(group(page)).not_to_have_attribute("open", "")
    expect(page.locator("#transcript > details.fold:not(.group)")).to_have_count(2)
    group(page).locator("> summary").click()
    expect(group(page).locator("details.fold")).to_have_count(3)
    expect(group(page).get_by_text("false", exact=True).first).to_be_visible()


@pytest.mark.slow
def test_a_group_is_open_while_a_call_in_it_waits(site: Site, new_page: NewPage) -> None:
    waiting = [*call(3, "execute")[:1], ("approval.requested", {"call_id": "c3", "kind": "tool"})]
    page = shown(site, new_page, [*reading(1, 2), *waiting, *said("Wait.")], "waiting")
    expect(group(page)).to_have_attribute("open", "")
    expect(group(page).get_by_text("waiting")).to_be_visible()


@pytest.mark.slow
def test_a_tool_with_a_hostile_name_is_counted_like_any_other(
    site: Site, new_page: NewPage
) -> None:
    events = [event for number in (1, 2, 3) for event in call(number, "constructor", output="")]
    page = shown(site, new_page, [*events, *said("Done.")], "completed")
    expect(group(page).locator("> summary")).to_have_text("Called constructor 3 times")


@pytest.mark.slow
def test_code_has_colours_keeps_its_text_and_shows_hidden_characters(
    site: Site, new_page: NewPage
) -> None:
    page = shown(site, new_page, said(CODE), "completed")
    code = page.locator("#transcript pre").first
    expect(code.locator(".hljs-keyword").first).to_have_text("def")
    expect(code.locator(".code-point")).to_have_text("⟨U+202E⟩")
    expect(code).to_have_text('def rain(day):\n    return "wet⟨U+202E⟩" if day else 2\n')
    other = page.locator("#transcript pre").last
    expect(other).to_have_text("<b>plain</b>\n")
    expect(other.locator("b, .hljs-keyword")).to_have_count(0)


@pytest.mark.slow
def test_the_copy_button_copies_the_text_that_the_page_shows(site: Site, new_page: NewPage) -> None:
    page = shown(site, new_page, said(CODE), "completed")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    block = page.locator(".code-block").first
    expect(block.locator(".hljs-keyword").first).to_be_visible()
    block.hover()
    block.get_by_role("button", name="Copy").click()
    expect(block.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == 'def rain(day):\n    return "wet⟨U+202E⟩" if day else 2\n'


@pytest.mark.slow
def test_a_command_has_the_colours_of_the_shell(site: Site, new_page: NewPage) -> None:
    events = call(1, "execute", output="hi", input={"command": 'if true; then echo "hi"; fi'})
    page = shown(site, new_page, events, "completed")
    page.locator("#transcript summary").click()
    expect(page.locator("#transcript .hljs-string")).to_have_text('"hi"')


@pytest.mark.slow
def test_a_link_to_a_call_opens_it_and_scrolls_to_it(site: Site, new_page: NewPage) -> None:
    events = [*reading(*range(1, 30)), *said("Long. " * 3000)]
    page = shown(site, new_page, events, "completed", place="#call=c17")
    expect(page.locator(".linked")).to_be_in_viewport()
    expect(page.locator(".linked .brief")).to_have_text("17.txt")
    expect(group(page)).to_have_attribute("open", "")
