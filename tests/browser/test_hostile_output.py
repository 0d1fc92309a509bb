"""The output of an agent and its tools, and file names, are always text on the page."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NewPage
from tests.support.site import Site

pytestmark = pytest.mark.chromium

PAYLOAD = (
    "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>"
    "<svg onload='window.pwned = 1'></svg>{{7*7}}</pre></details>javascript:pwned=1"
)


def test_markup_in_every_event_stays_text(site: Site, new_page: NewPage) -> None:
    run = site.do("make_run", owner="olga", message=PAYLOAD)
    thread = site.do("run", run=run)["thread"]
    outputs = site.directory / "workspaces" / thread / "outputs"
    outputs.mkdir(parents=True)
    (outputs / "<img src=x onerror=window.pwned=1>").write_text("x")
    call = {"call_id": PAYLOAD, "tool": PAYLOAD, "input": {PAYLOAD: PAYLOAD, "n": [PAYLOAD]}}
    subagent = {"child_run_id": '"><script>window.pwned = 1</script>', "name": PAYLOAD}
    todo = {"content": PAYLOAD, "status": PAYLOAD, "note": PAYLOAD}
    events = [
        ("run.started", {"agent": PAYLOAD}),
        ("text.delta", {"part_id": "1", "text": PAYLOAD}),
        ("text.completed", {"part_id": "2", "text": PAYLOAD}),
        ("reasoning.completed", {"part_id": "3", "text": PAYLOAD}),
        ("tool.input.started", {"call_id": PAYLOAD, "tool": PAYLOAD}),
        ("tool.input.delta", {"call_id": PAYLOAD, "text": PAYLOAD}),
        ("tool.called", call),
        ("tool.progress", {"call_id": PAYLOAD, "text": PAYLOAD}),
        ("tool.completed", {"call_id": PAYLOAD, "output": PAYLOAD}),
        ("tool.rejected", {**call, "call_id": "b", "message": PAYLOAD}),
        ("tool.denied", {"call_id": "b", "reason": PAYLOAD}),
        ("todos.updated", {"current_task": PAYLOAD, "todos": [todo]}),
        ("subagent.started", subagent),
        ("subagent.finished", {**subagent, "status": PAYLOAD}),
        ("approval.decided", {"call_id": "b", "decision": PAYLOAD, "by": PAYLOAD}),
        ("budget.warning", {"used": PAYLOAD, "limit": PAYLOAD, "kind": PAYLOAD}),
        ("context.compacted", {"before": PAYLOAD, "after": PAYLOAD}),
        ("message.joined", {"text": PAYLOAD, "by": PAYLOAD, "files": [PAYLOAD]}),
        ("skill.loaded", {"name": PAYLOAD, "version": PAYLOAD, "trust": PAYLOAD}),
        ("skill.deactivated", {"name": PAYLOAD}),
        ("skills.skipped", {"problems": [{"skill": PAYLOAD, "message": PAYLOAD}], "count": 1}),
        ("guard.blocked", {"guardrail": PAYLOAD, "stage": PAYLOAD, "reason": PAYLOAD}),
        ("guard.replaced", {"guardrail": PAYLOAD, "stage": PAYLOAD}),
        ("guard.stuck", {"kind": PAYLOAD, "count": PAYLOAD, "action": PAYLOAD}),
        ("hook.failed", {"hook": PAYLOAD, "point": PAYLOAD, "message": PAYLOAD}),
        ("tool.retried", {"retry_in": PAYLOAD, "message": PAYLOAD}),
        ("run.suspended", {"reason": PAYLOAD}),
        ("run.resumed", {"reason": PAYLOAD}),
        ("run.failed", {"message": PAYLOAD}),
    ]
    site.do("append", run=run, events=[("__proto__", {"reason": PAYLOAD})], is_declared=False)
    last = site.do("append", run=run, events=events, status="running")
    site.do("ask", run=run, tool=PAYLOAD, tool_input={PAYLOAD: PAYLOAD})
    page = new_page("olga")

    page.goto(f"/runs/{run}/")
    expect(page.locator("#run")).to_have_attribute("data-seq", str(last + 3))
    page.locator(".approval").wait_for()
    expect(page.locator("#files li")).to_have_count(1)

    assert page.evaluate("window.pwned") is None
    for tag in ("img", "svg:not(.dot)", "main script"):
        expect(page.locator(tag)).to_have_count(0)
    assert page.locator("#transcript").inner_text().count("<script>") >= 12
    expect(page.locator(".asked")).to_have_text([PAYLOAD, PAYLOAD])
    expect(page.locator("#current-task")).to_have_text(PAYLOAD)
    for link in page.locator("#transcript a").all():
        assert (link.get_attribute("href") or "").startswith("/runs/%22%3E%3Cscript%3E")


def test_hidden_characters_are_shown(site: Site, new_page: NewPage) -> None:
    run = site.do("make_run", owner="olga")
    text = "safe\u202etxt.exe\u202c \x1b[2J\x00 zero\u200bwidth"
    last = site.do("append", run=run, events=[("text.completed", {"part_id": "1", "text": text})])
    page = new_page("olga")
    page.goto(f"/runs/{run}/")
    expect(page.locator("#run")).to_have_attribute("data-seq", str(last))

    assert page.locator("#transcript .said").inner_text() == (
        "safe⟨U+202E⟩txt.exe⟨U+202C⟩ ⟨U+001B⟩[2J⟨U+0000⟩ zero⟨U+200B⟩width"
    )


@pytest.mark.slow
def test_large_numbers_are_not_rounded(site: Site, new_page: NewPage) -> None:
    run = site.do("make_run", owner="olga")
    called = {"call_id": "c", "tool": "pay", "input": {"account": 9_007_199_254_740_993}}
    site.do("append", run=run, events=[("tool.called", called)])
    page = new_page("olga")
    page.goto(f"/runs/{run}/")
    expect(page.locator("#transcript pre").first).to_have_text("9007199254740993")


def test_the_policy_would_stop_a_script_that_got_in(site: Site, new_page: NewPage) -> None:
    run = site.do("make_run", owner="olga")
    # A second page: the console of the first must have no errors.
    page = new_page("olga").context.new_page()
    page.goto(f"/runs/{run}/")
    refused = page.evaluate(
        """() => {
            try { document.body.innerHTML = "<b>x</b>"; return "took it"; }
            catch (error) { return error.name; }
        }"""
    )
    assert refused == "TypeError"


def test_another_user_sees_no_page(site: Site, new_page: NewPage) -> None:
    run = site.do("make_run", owner="olga", message="Private")
    page = new_page("peter")
    answer = page.request.get(f"/runs/{run}/")
    assert answer.status == 404
    assert "Private" not in answer.text()
