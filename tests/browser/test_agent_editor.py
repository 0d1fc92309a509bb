"""The settings of an agent in a browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import LOOKS, NewPage, look, overflow, shoot
from tests.browser.test_every_page import LISTEN, serious
from tests.support.hang import HANG
from tests.support.site import Site

pytestmark = [pytest.mark.chromium, pytest.mark.timeout(6 * HANG)]

HOSTILE = "<img src=x onerror=alert(1)>\u202e" + "long" * 30
SECTIONS = (
    *("agent", "prompt", "model", "tools", "approval", "guardrails", "sandbox-and-network"),
    *("mcp-servers", "databases", "subagents", "sharing", "versions", "file"),
)


def open_editor(site: Site, new_page: NewPage, slug: str, section: str) -> Page:
    """Open the settings of a new agent as its operator, whom nothing is refused."""
    site.do("make_user", name=f"editor-{slug}", admin=True)
    rules = [
        {"tool": "execute", "when": {"command": "rm .*"}, "action": "deny", "reason": HOSTILE},
        {"tool": "write_*", "action": "ask", "ask": {"approvals_needed": 2}},
    ]
    site.do(
        "make_agent",
        slug=slug,
        model="echo",
        name="Writer of reports",
        description=HOSTILE,
        system_prompt="You write {{date}}.\n" * 20,
        approval_rules=rules,
        interrupt_on={"execute": True, "edit_file": {"allowed_decisions": ["approve"]}},
        tools=["ls", "read_file", "execute", HOSTILE[:100]],
        fallbacks=[{"provider": "anthropic", "model": "claude-haiku-4-5"}],
    )
    page = new_page(f"editor-{slug}")
    page.add_init_script(LISTEN)
    page.goto(f"/agents/{slug}/settings/?section={section}")
    return page


@pytest.mark.slow
def test_each_section_fits_is_readable_and_obeys_the_policy(site: Site, new_page: NewPage) -> None:
    page = open_editor(site, new_page, "sections", "agent")
    wrong: list[str] = []
    page.on("dialog", lambda dialog: wrong.append(f"a dialog: {dialog.message}"))
    for section in SECTIONS:
        look(page, *LOOKS[0])
        page.goto(f"/agents/sections/settings/?section={section}")
        for fold in page.locator(".editor-main details").all():
            fold.evaluate("fold => { fold.open = true; }")
        for width, colours in LOOKS:
            look(page, width, colours)
            shoot(page, f"editor-{section}-{width}-{colours}")
            here = f"{section} at {width}, {colours}: "
            if overflow(page) > 0:
                wrong.append(here + "it scrolls sideways")
            wrong += [here + text for text in serious(page)]
        wrong += [f"{section}: {text}" for text in page.evaluate("window.refused")]
    assert wrong == []


@pytest.mark.slow
def test_rules_are_rehearsed_and_published_without_leaving_the_page(
    site: Site, new_page: NewPage
) -> None:
    page = open_editor(site, new_page, "rules", "prompt")
    prompt = page.locator("#id_system_prompt")
    prompt.fill("abcdef")
    expect(page.locator("#tokens")).to_have_text("3")
    page.get_by_role("button", name="{{user.name}}").click()
    expect(prompt).to_have_value("abcdef{{user.name}}")
    page.get_by_role("link", name="Approval", exact=True).click()
    expect(page.locator("#panel-prompt")).to_be_hidden()
    page.get_by_role("button", name="Add rule").click()
    row = page.get_by_role("group", name="Rule 3", exact=True)
    row.get_by_label("Tool", exact=True).fill("ls")
    row.get_by_label("Action").select_option("deny")
    expect(page.locator("#rehearsal")).to_contain_text("would change")
    assert serious(page) == []
    row.get_by_role("button", name="Move up").click()
    expect(
        page.get_by_role("group", name="Rule 2", exact=True).get_by_label("Tool", exact=True)
    ).to_have_value("ls")
    page.get_by_placeholder("What changes, and why?").fill("Nobody lists")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("alert")).to_contain_text("Published version")
    expect(
        page.get_by_role("group", name="Rule 2", exact=True).get_by_label("Tool", exact=True)
    ).to_have_value("ls")
    page.get_by_placeholder("A message for").fill("Hello")
    page.get_by_role("button", name="Start a run").click()
    expect(page.locator("#try-runs a")).to_have_text("Hello")
    expect(page.get_by_placeholder("A message for")).to_have_value("")
    page.get_by_role("link", name="Versions").click()
    expect(page.locator(".editor-version").first).to_contain_text("Nobody lists")
    expect(page.locator(".editor-version").first).to_contain_text("abcdef{{user.name}}")
    assert page.evaluate("window.refused") == []


def test_a_draft_is_tried_without_publishing_it(site: Site, new_page: NewPage) -> None:
    page = open_editor(site, new_page, "drafts", "prompt")
    page.locator("#id_system_prompt").fill("A draft.")
    message = page.get_by_placeholder("A message for")
    message.fill(HOSTILE)
    page.get_by_role("button", name="Start a run").click()
    expect(page.locator("#try-runs a")).to_have_count(1)
    expect(page.locator("#id_system_prompt")).to_have_value("A draft.")
    expect(page.locator("#unsaved")).to_have_text("Unsaved changes")
    for width, colours in LOOKS:
        look(page, width, colours)
        shoot(page, f"editor-draft-{width}-{colours}")
        assert overflow(page) == 0
        assert serious(page) == []
    page.get_by_role("link", name="Limits of a run", exact=True).click()
    page.locator("#id_max_turns").fill("0")
    message.fill("Again")
    page.get_by_role("button", name="Start a run").click()
    expect(page.locator("#try-note")).to_contain_text("greater than or equal to 1")
    expect(message).to_have_value("Again")
    page.once("dialog", lambda dialog: dialog.accept())
    page.locator("#try-runs a").click()
    expect(page.get_by_role("note").last).to_contain_text("a draft")
    for width, colours in LOOKS:
        look(page, width, colours)
        shoot(page, f"editor-draft-run-{width}-{colours}")
        assert overflow(page) == 0
    page.goto("/agents/drafts/settings/?section=prompt")
    expect(page.locator("#id_system_prompt")).to_contain_text("You write")
    assert page.evaluate("window.refused") == []


@pytest.mark.slow
def test_a_schema_starts_from_an_example_and_is_checked(site: Site, new_page: NewPage) -> None:
    page = open_editor(site, new_page, "schemas", "form-of-answers")
    area, result = page.locator("#id_output_schema"), page.locator("#schema-result")
    examples = page.get_by_label("Start from an example")
    examples.select_option(label="A list of items")
    expect(area).to_have_value(re.compile(r'"items"'))
    expect(result).to_have_text("The schema is valid.")
    expect(examples).to_be_enabled()
    area.fill('{"<img src=x onerror=alert(1)>": 1}')
    expect(examples).to_be_disabled()
    expect(result).to_contain_text("<img src=x onerror=alert(1)>")
    expect(area).to_have_attribute("aria-invalid", "true")
    for width, colours in LOOKS:
        look(page, width, colours)
        shoot(page, f"editor-schema-{width}-{colours}")
        assert overflow(page) == 0
        assert serious(page) == []
    area.fill("")
    expect(examples).to_be_enabled()
    expect(result).to_have_text("")
    assert page.evaluate("window.refused") == []


@pytest.mark.slow
def test_names_of_tools_are_added_to_a_subagent(site: Site, new_page: NewPage) -> None:
    page = open_editor(site, new_page, "helpers", "subagents")
    page.get_by_role("button", name="Add subagent").click()
    row = page.get_by_role("group", name="Subagent 1", exact=True)
    tools = row.get_by_label("Tools", exact=True)
    add = row.get_by_label("Add to Tools")
    for name in ("ls", "read_file", "ls"):
        add.select_option(name)
    expect(tools).to_have_value("ls\nread_file")
    expect(add).to_have_value("")
    for width, colours in LOOKS:
        look(page, width, colours)
        shoot(page, f"editor-names-{width}-{colours}")
        assert overflow(page) == 0
        assert serious(page) == []
    row.get_by_label("Name").fill("reader")
    row.get_by_label("Description").fill("Reads.")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("alert")).to_contain_text("Published version")
    expect(tools).to_have_value("ls\nread_file")
    assert page.evaluate("window.refused") == []
