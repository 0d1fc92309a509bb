"""Testing rules in an agent's form before they are saved."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NewPage
from tests.support.site import Site

pytestmark = pytest.mark.chromium

RULES = '[{"tool": "execute", "when": {"command": "echo"}, "action": "deny"}]'


@pytest.mark.slow
def test_unsaved_rules_are_tried_on_their_own_page(site: Site, new_page: NewPage) -> None:
    site.do("make_user", name="root", admin=True)
    run = site.do("make_run", owner="olga")
    site.do("ask", run=run, tool="execute", tool_input={"command": "echo a\u202eb"})
    page = new_page("root")
    page.goto("/admin/agents/agent/")
    page.get_by_role("link", name="Assistant", exact=True).click()
    form = page.url
    page.locator("#id_approval_rules").fill(RULES)
    with page.context.expect_page() as opened:
        page.get_by_role("button", name="Rehearse without saving").click()
    rehearsal = opened.value
    # Other tests share the site and make calls, too.
    expect(rehearsal.get_by_role("heading", name=re.compile(r"\d+ calls?, "))).to_be_visible()
    row = rehearsal.get_by_role("row", name=run)
    expect(row).to_contain_text("rule 1")
    expect(row).to_contain_text("echo a⟨U+202E⟩b")
    rehearsal.locator("#id_approval_rules").fill('[{"tool": "execute", "when": {"command": "("}')
    rehearsal.get_by_role("button", name="Rehearse").click()
    expect(rehearsal.get_by_role("alert")).to_contain_text("not JSON")
    assert page.url == form
    page.reload()
    expect(page.locator("#id_approval_rules")).to_have_value("")
