"""Every page of the site as users see it: wide and narrow, light and dark.

Each page is loaded once, wide and light; then the window and the colours change. No script or
template depends on the width or the colours when it loads. If VEL_TEST_PICTURES names a directory,
the tests store screenshots of the pages there.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import LOOKS, NewPage, look, overflow, shoot
from tests.support.every_page import addresses
from tests.support.hang import HANG
from tests.support.pictures import png
from tests.support.site import Site

pytestmark = [pytest.mark.chromium, pytest.mark.timeout(6 * HANG)]

LISTEN = """
window.refused = [];
document.addEventListener("securitypolicyviolation", (event) =>
    window.refused.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""
TEXT = """## What I found

The rain falls **mostly** in *November*, see [the source](https://example.org/weather?a=1).

| month | mm |
|:--|--:|
| June | 37 |
| November | 180 |

1. Read `rain.csv`
2. Draw it

```python
print("a long line of code that has to scroll or wrap in its own block " * 3)
```

> A word of care.

![Rain by month](outputs/rain.png)
"""
OVERHANGING = """
[...document.querySelectorAll(".vel-dashboard .vel-box")]
    .filter((box) => box.scrollWidth > box.clientWidth)
    .map((box) => box.querySelector("h2").textContent)
"""
"""Boxes whose content is too wide and does not scroll in its own element."""


def prepared(site: Site) -> dict[str, object]:
    """Create content for each page of a site. Return the arguments of the addresses."""
    site.do("allow", user="ada", permissions=["manage_library", "review_skill", "add_agent"])
    run = site.do("make_run", owner="ada", message="When does it rain?\n" + "long " * 400)
    outputs = site.directory / "workspaces" / site.do("run", run=run)["thread"] / "outputs"
    outputs.mkdir(parents=True)
    (outputs / "rain.png").write_bytes(png(600, 300))
    (outputs / "report with a long name that goes on and on and on.md").write_text("# Rain")
    edit = {"path": "/sandbox/outputs/report.md", "old_text": "dry", "new_text": "wet"}
    todos = [
        {"content": word, "status": status}
        for word, status in (
            ("Read", "completed"),
            ("Draw", "in_progress"),
            ("Ask", "blocked"),
            ("Publish", "pending"),
        )
    ]
    site.do(
        "append",
        run=run,
        status="running",
        events=[
            ("run.started", {"agent": "assistant"}),
            ("reasoning.completed", {"part_id": "0", "text": "Let me see."}),
            ("text.completed", {"part_id": "1", "text": TEXT}),
            ("todos.updated", {"todos": todos}),
            ("tool.called", {"call_id": "c1", "tool": "ls", "input": {"path": "/" + "x" * 300}}),
            ("tool.completed", {"call_id": "c1", "output": "word " * 6_000}),
            ("tool.called", {"call_id": "c2", "tool": "execute", "input": {"command": "false"}}),
            ("tool.failed", {"call_id": "c2", "message": "exit code 1"}),
            ("skill.loaded", {"name": "beans", "version": "1", "trust": "imported"}),
        ],
    )
    site.do("make_child", parent=run, task="Count the days " * 20)
    asked = site.do("ask", run=run, tool="edit_file", tool_input=edit, call_id="c3")
    site.do("remember", path="knowledge/rain.md", content="# Rain\n\nA lot.\u200b\n" + "x" * 300)
    other = site.do("make_run", owner="ada", message="Remember " + "thatthing" * 30)
    site.do("ask_memory", run=other, path="knowledge/rain.md", content="# Rain\nLess.\n")
    failed = site.do("make_run", owner="ada", message="This one fails")
    site.do("end", run=failed, status="failed", events=[])
    skill = site.do("bring_skill", by="ada", name="hostile-beans", hostile=True)
    return {
        "run_id": run,
        "thread_id": site.do("run", run=run)["thread"],
        "request_id": asked,
        "slug": "assistant",
        "skill_id": skill,
        "schedule_id": site.do("make_schedule", owner="ada"),
        "hook_id": site.do("make_inbound_webhook", owner="ada"),
        "path": "SKILL.md",
    }


def pages_of(site: Site, page: Page, arguments: dict[str, object]) -> dict[str, str]:
    """Return the addresses of pages by name; others are files, data or actions."""
    found = {}
    for name, path in addresses(arguments):
        answer = page.request.get(path, max_redirects=0)
        if "text/html" in answer.headers.get("content-type", "") and answer.status == 200:
            found[name] = path
        else:
            assert answer.status in (200, 302, 404, 405), (name, answer.status)
    return found | {
        "history-none": "/runs/?q=nosuchword&status=failed",
        "home-again": f"/?again={arguments['run_id']}",
        "decided": "/approvals/?tab=decided",
        "knowledge-file": "/agents/assistant/knowledge/?path=knowledge/rain.md",
        "knowledge-edit": "/agents/assistant/knowledge/?edit=1",
        "skill-new": "/agents/assistant/skills/?edit=new",
        "usage-week": "/usage/?days=7",
        "console-tools": "/console/?days=90&by=tool",
        "editor-approval": "/agents/assistant/settings/?section=approval",
        "editor-versions": "/agents/assistant/settings/?section=versions",
    }


def serious(page: Page, within: str = "html") -> list[str]:
    """Return axe's serious and critical findings, with element and reason."""
    axe = Axe()
    if page.evaluate("window.axe !== undefined"):
        axe.axe_script = ""  # half a megabyte, which the page has already
    found: list[dict[str, Any]] = axe.run(page, context=within).response["violations"]
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"][:3]
    ]


@pytest.mark.usefixtures("allowed")
def test_every_page_fits_is_readable_and_obeys_the_policy(site: Site, new_page: NewPage) -> None:
    arguments = prepared(site)
    wrong: list[str] = []
    page = new_page("ada")
    page.add_init_script(LISTEN)
    page.on("dialog", lambda dialog: wrong.append(f"a dialog: {dialog.message}"))
    paths = pages_of(site, page, arguments)
    assert {"home", "run", "approvals", "approval", "usage", "history", "skill"} <= set(paths)
    for name, path in paths.items():
        look(page, *LOOKS[0])
        page.goto(path)
        if name == "run":
            shown = page.locator("#transcript .markdown img")
            expect(shown).to_have_js_property("naturalWidth", 600)
            page.locator("#approvals article").first.wait_for()
            for fold in page.locator("#transcript details").all():
                fold.evaluate("fold => { fold.open = true; }")
        for width, colours in LOOKS:
            look(page, width, colours)
            shoot(page, f"{name}-{width}-{colours}")
            here = f"{name} at {width}, {colours}: "
            if overflow(page) > 0:
                wrong.append(here + "it scrolls sideways")
            wrong += [here + text for text in serious(page)]
        wrong += [f"{name}: {text}" for text in page.evaluate("window.refused")]
    assert wrong == []


@pytest.mark.slow
def test_the_status_page_of_the_admin(site: Site, new_page: NewPage) -> None:
    site.do("make_user", name="operator", admin=True)
    said = f"key sk-ant-api03-{'k' * 40} \u202e<b>{'slow' * 60}</b>"
    site.do("show_trouble", owner="peter", provider_says=said, worker="here:7:ab")
    wrong: list[str] = []
    page = new_page("operator")
    page.add_init_script(LISTEN)
    page.goto("/admin/")
    page.locator("a[href='/admin/status/']").first.click()
    page.wait_for_url("**/admin/status/")
    checks = box_of(page, "Health checks")
    for name in ("database", "migrations", "disk", "sandbox", "workers"):
        expect(checks.get_by_role("row", name=name)).to_contain_text(re.compile("ok|failing"))
    expect(checks.get_by_role("row", name="workers")).to_contain_text("ok")
    expect(box_of(page, "Processes")).to_contain_text("1 of 32")
    errors = box_of(page, "Model errors of the last hour")
    expect(errors).to_contain_text("rate_limited (1)")
    expect(errors).to_contain_text("key [secret withheld] ⟨U+202E⟩<b>slowslow")
    for width, colours in LOOKS:
        look(page, width, colours)
        shoot(page, f"status-{width}-{colours}")
        here = f"at {width}, {colours}: "
        if overflow(page) > 0:
            wrong.append(here + "it scrolls sideways")
        wrong += [here + text for text in serious(page, "#content-main")]
    wrong += page.evaluate("window.refused")
    for cell in page.locator("section.vel-box > table td:last-child").all():
        cell.evaluate("cell => { cell.textContent = '7 GB free at ' + '/long'.repeat(20); }")
    for width, colours in LOOKS:
        look(page, width, colours)
        wrong += [f"at {width}: {name} overhangs its box" for name in page.evaluate(OVERHANGING)]
    assert wrong == []
    page = new_page("olga")
    page.goto("/admin/status/")
    assert "/login/" in page.url


def box_of(page: Page, heading: str) -> Locator:
    return page.locator("section.vel-box", has=page.get_by_role("heading", name=heading))


@pytest.mark.slow
def test_the_sign_in_page_and_the_page_of_nothing(site: Site, new_page: NewPage) -> None:
    page = new_page()
    page.goto("/login/")
    for width, colours in LOOKS:
        look(page, width, colours)
        assert serious(page) == []
        assert overflow(page) == 0


@pytest.mark.slow
def test_the_keyboard_and_the_colours(site: Site, new_page: NewPage) -> None:
    page = new_page("olga")
    page.goto("/runs/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("gu?")
    expect(page.get_by_role("searchbox")).to_have_value("gu?")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("u")
    page.wait_for_url("**/usage/")

    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#menu summary").click()
    assert serious(page) == []
    page.get_by_role("button", name="Dark").click()
    page.wait_for_url("**/usage/")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page.locator("#menu summary").click()
    page.get_by_role("button", name="System").click()
    expect(page.locator("html[data-theme]")).to_have_count(0)
