"""Testing rules in an agent's form before they are saved."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NewPage
from tests.support.site import Site

pytestmark = pytest.mark.chromium


@pytest.mark.slow
def test_unsaved_rules_are_tried_on_their_own_page(site: Site, new_page: NewPage) -> None:
    site.do("make_user", name="root", admin=True)
    run = site.do("make_run", owner="olga")
    site.do("ask", run=run, tool="execute", tool_input={"command": "echo a\u202eb"})
    page = new_page("root")
    page.goto("/admin/agents/agent/")
    page.get_by_role("link", name="Assistant", exact=True).click()
    form = page.url
    page.get_by_role("button", name="Add rule").click()
    rule = page.get_by_role("group", name="Rule 1", exact=True)
    rule.get_by_label("Tool", exact=True).fill("execute")
    rule.get_by_label("Action").select_option("deny")
    rule.locator("summary", has_text="When").click()
    rule.get_by_label("Command").fill("echo")
    with page.context.expect_page() as opened:
        page.get_by_role("button", name="Rehearse without saving").click()
    rehearsal = opened.value
    # Other tests share the site and make calls, too.
    expect(rehearsal.get_by_role("heading", name=re.compile(r"\d+ calls?, "))).to_be_visible()
    row = rehearsal.get_by_role("row", name=run)
    expect(row).to_contain_text("rule 1")
    expect(row).to_contain_text("echo a⟨U+202E⟩b")
    rehearsal.get_by_label("Command").first.fill("(")
    rehearsal.get_by_role("button", name="Rehearse").click()
    expect(rehearsal.get_by_role("alert")).to_contain_text("approval_rules.0.when.command")
    assert page.url == form
    page.reload()
    expect(page.get_by_role("group", name="Rule 1", exact=True)).to_have_count(0)
