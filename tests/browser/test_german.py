"""The pages in German: nothing is cut, and no number becomes unreadable for scripts and forms."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import NewPage, look, overflow, shoot
from tests.browser.test_every_page import LISTEN, prepared
from tests.support.hang import HANG
from tests.support.site import Site

pytestmark = [pytest.mark.chromium, pytest.mark.timeout(6 * HANG)]

HOSTILE = '<img src="x" onerror="document.title = 1">'
LOCALIZED = """
[...document.querySelectorAll("*")].flatMap((each) => [...each.attributes]
    .filter((one) => /^-?[\\d.]*\\d,\\d+%?$/.test(one.value))
    .map((one) => `${each.tagName} ${one.name}=${one.value}`))
"""
"""Attributes with a decimal comma, which scripts and browsers cannot read."""


FILL_IN = """
async (hostile) => {
    const { gettext, interpolate } = await import("/static/agents/web/i18n.js");
    const { element, setText } = await import("/static/agents/web/text.js");
    const shown = element("p");
    setText(shown, interpolate(gettext("Send now: %(text)s"), { text: hostile }));
    document.body.append(shown);
    return [shown.childElementCount, shown.textContent];
}
"""

REVIEW = """
async () => {
    const { reviewElement } = await import("/static/agents/web/review.js");
    const findings = ["danger", "warning", "note", "unknown"].map((severity) =>
        ({ line: 1, severity, description: "Looks like a request" }));
    const diff = { kind: "diff", path: "a.md", status: "changed", added: 1, removed: 0,
                   notes: [], findings, rows: [] };
    const shown = reviewElement({ title: "Write", notes: [], sections: [diff] });
    return [...shown.querySelectorAll(".review-findings strong")].map((each) => each.textContent);
}
"""


def in_german(context: BrowserContext, site: Site) -> None:
    context.add_cookies([{"name": "vel_language", "value": "de", "url": site.url}])


def problems(page: Page, name: str) -> list[str]:
    found = [f"{name}: {text}" for text in page.evaluate("window.refused")]
    found += [f"{name}: {text}" for text in page.evaluate(LOCALIZED)]
    if page.locator("html").get_attribute("lang") != "de":
        found.append(f"{name}: it is not German")
    for width in (1280, 390):
        look(page, width, "light")
        shoot(page, f"german-{name}-{width}")
        if overflow(page) > 0:
            found.append(f"{name} at {width}: it scrolls sideways")
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("allowed")
def test_german_pages_fit_and_work(site: Site, new_page: NewPage) -> None:
    run = prepared(site)["run_id"]
    site.do("make_user", name="gerda", admin=True)
    paths = {
        "home": "/",
        "conversations": "/conversations/",
        "run": f"/runs/{run}/",
        "files": f"/runs/{run}/browse/",
        "approvals": "/approvals/",
        "editor": "/agents/assistant/settings/",
        "editor-approval": "/agents/assistant/settings/?section=approval",
        "editor-versions": "/agents/assistant/settings/?section=versions",
        "console": "/console/",
        "usage": "/usage/",
        "skills": "/skills/",
        "knowledge": "/agents/assistant/knowledge/",
        "schedules": "/schedules/",
        "profile": "/profile/",
    }
    admin = {
        "admin": "/admin/",
        "admin-runs": "/admin/agents/run/",
        "admin-agents": "/admin/agents/agent/",
        "admin-approvals": "/admin/agents/approvalrequest/",
    }
    wrong: list[str] = []
    for user, found in (("ada", paths), ("gerda", admin)):
        page = new_page(user)
        in_german(page.context, site)
        page.add_init_script(LISTEN)
        for name, path in found.items():
            look(page, 1280, "light")
            answer = page.goto(path)
            assert answer is not None
            assert answer.ok, path
            if name == "run":
                page.locator("#approvals article").first.wait_for()
            wrong += problems(page, name)
    # The admin's own scripts replace the object that has the translations.
    page.goto("/admin/agents/agent/add/")
    expect(page.get_by_placeholder("Werkzeug suchen")).to_have_count(1)
    assert wrong == []


@pytest.mark.slow
def test_a_review_of_a_script_has_german_severities(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    in_german(page.context, site)
    page.goto("/")
    assert page.evaluate(REVIEW) == ["Gefahr", "Warnung", "Hinweis", "unknown"]


@pytest.mark.slow
def test_a_script_shows_a_hostile_value_in_a_translated_sentence_as_text(
    new_page: NewPage, site: Site
) -> None:
    page = new_page("ada")
    in_german(page.context, site)
    page.goto("/")
    children, text = page.evaluate(FILL_IN, f"{HOSTILE} %(text)s")
    assert children == 0
    assert text.endswith(f"{HOSTILE} %(text)s")
    assert not text.startswith("Send now")
