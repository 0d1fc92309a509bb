"""Skills in a browser: an agent's switches and forms, the library, and a hostile package."""

from __future__ import annotations

import re
import zlib

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage, look, overflow
from tests.support.site import Site
from tests.support.skill_zips import hostile_files, zipped

pytestmark = pytest.mark.chromium

PANEL = "/agents/assistant/skills/"
PERMISSIONS = ["manage_library", "review_skill", "change_agent"]


@pytest.fixture
def word(request: pytest.FixtureRequest) -> str:
    """A part of this test's names: all tests share one site."""
    return f"s{zlib.crc32(request.node.name.encode()):08x}"


@pytest.fixture
def sam(site: Site, word: str) -> str:
    """A user with all permissions for skills."""
    name = f"sam-{word}"
    site.do("make_run", owner="olga")
    site.do("make_user", name=name)
    site.do("allow", user=name, permissions=PERMISSIONS)
    return name


def overflows(page: Page) -> tuple[int, int]:
    """Return how much the page is wider than the window of a desktop and of a phone."""

    found = []
    for width in (1280, 390):
        look(page, width)
        found.append(overflow(page))
    return found[0], found[1]


@pytest.mark.slow
@pytest.mark.parametrize("scripts", [True, False])
def test_an_own_skill_is_added_switched_edited_and_deleted(
    new_page: NewPage, sam: str, word: str, scripts: bool
) -> None:
    page = new_page(sam, scripts=scripts)
    page.goto("/")
    page.get_by_role("link", name="Skills of Assistant").click()
    page.get_by_role("link", name="Add skill").click()
    page.get_by_label("Name").fill(f"{word} A")
    page.get_by_label("Description").fill("Counts beans <b>.")
    page.get_by_label("Instructions").fill("# Beans\n\nCount them.")
    page.get_by_role("button", name="Add").click()
    name = f"{word}-a"
    expect(page.get_by_role("alert")).to_have_text(f"{name} was added.")

    switch = page.get_by_role("switch", name=name)
    expect(switch).to_be_checked()
    switch.focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("alert")).to_contain_text("Turned off")
    expect(page.get_by_role("switch", name=name)).not_to_be_checked()

    page.get_by_role("link", name=f"Edit {name}").click()
    area = page.get_by_label("Instructions")
    assert area.input_value() == "# Beans\n\nCount them."
    area.fill("Count twice.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_have_text(f"{name} was saved as version 2.")
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.locator(".numbered pre")).to_contain_text("Count twice.")
    page.get_by_role("link", name="Compare with version 1").click()
    expect(page.locator("#change tr.removed").first).to_contain_text("# Beans")
    page.get_by_role("link", name="Skills of Assistant").click()
    page.get_by_role("button", name=f"Delete {name}").click()
    expect(page.get_by_role("alert")).to_contain_text("Deleted.")
    expect(page.get_by_role("switch", name=name)).to_have_count(0)


@pytest.mark.slow
def test_a_package_is_uploaded_and_a_bad_one_refused(
    new_page: NewPage, sam: str, word: str
) -> None:
    page = new_page(sam)
    page.goto(f"{PANEL}?edit=new")
    file = {"name": "SKILL.md", "mimeType": "text/markdown", "buffer": b"<script>no head"}
    page.get_by_label("File").set_input_files([file])
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("alert")).to_contain_text("starts with a head")
    good = {**file, "name": "x.zip", "buffer": zipped({"scripts/a.py": "1\n"}, name=word)}
    page.get_by_label("File").set_input_files([good])
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("alert")).to_contain_text(f"{word} was imported as version 1")


@pytest.mark.slow
def test_a_later_version_is_found_compared_and_reviewed(
    site: Site, new_page: NewPage, sam: str, word: str
) -> None:
    skill = site.do("bring_skill", by=sam, name=word, description="Peels quinces for the jam.")
    site.do("bring_skill", by=sam, name=word, description="Peels every quince for the jam.")
    page = new_page(sam)
    page.goto("/")
    page.get_by_role("link", name="Skills", exact=True).click()
    page.get_by_label("Search").fill("peel quinces")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name=word, exact=True).click()
    page.get_by_role("link", name="Show its changes").click()
    expect(page).to_have_url(re.compile(rf"/skills/{skill}/\?version=2&compare=1"))
    expect(page.locator("tr.added").first).to_contain_text("every quince")
    page.get_by_role("button", name="Accept as reviewed").click()
    expect(page.get_by_role("alert")).to_contain_text("Version 2 is reviewed")
    expect(page.locator(".badges .status")).to_have_text("reviewed")
    page.get_by_label("Reason for the quarantine").fill("A mistake")
    page.get_by_role("button", name="Put into quarantine").click()
    expect(page.locator(".badges .status")).to_have_text("quarantined")

    page.goto(PANEL)
    row = page.locator("li", has=page.get_by_role("link", name=word, exact=True))
    expect(row).to_contain_text("version 1")
    page.get_by_role("switch", name=word).click()
    expect(page.get_by_role("switch", name=word)).to_be_checked()


def test_a_hostile_package_is_only_text(site: Site, new_page: NewPage, sam: str, word: str) -> None:
    skill = site.do("bring_skill", by=sam, name=word, hostile=True)
    page = new_page(sam, width=1280)
    page.goto(f"/skills/{skill}/")
    expect(page.locator(".numbered .mark-hidden")).to_contain_text(
        ["⟨U+00AD⟩", "⟨U+00AD⟩", "⟨U+202E⟩", "⟨U+200B⟩"]
    )
    assert overflows(page) == (0, 0)
    for path in hostile_files():
        page.get_by_role("navigation", name="Files and versions").get_by_role(
            "link", name=path
        ).click()
        expect(page.get_by_role("heading", name=path)).to_be_visible()
        assert overflows(page) == (0, 0), path
        assert page.locator("main script, main img, main svg, main iframe").count() == 0
    for url in (f"/skills/?q={word}", "/skills/?scope=library", PANEL):
        page.goto(url)
        expect(page.get_by_role("link", name=word, exact=True)).to_be_visible()
        assert overflows(page) == (0, 0)
    assert page.evaluate("window.pwned") is None


@pytest.mark.slow
def test_nothing_is_wider_than_the_window(
    site: Site, new_page: NewPage, sam: str, word: str
) -> None:
    skill = site.do("bring_skill", by=sam, name=word, description="x" * 1000)
    page = new_page(sam, width=1280)
    for url in (PANEL, f"{PANEL}?edit=new", "/skills/", f"/skills/{skill}/"):
        page.goto(url)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            assert overflows(page) == (0, 0), (url, scheme)


@pytest.mark.slow
def test_a_run_shows_loaded_and_omitted_skills(site: Site, new_page: NewPage) -> None:
    run = site.do("make_run", owner="olga")
    problems = [{"skill": "old", "message": "There is no head."}]
    loaded = {"name": "beans", "version": "1.2", "trust": "imported", "content_hash": "0" * 64}
    events = [
        ("run.started", {}),
        ("skills.skipped", {"problems": problems, "count": 7}),
        ("skill.loaded", loaded),
        ("skill.loaded", {**loaded, "version": "", "trust": "reviewed"}),
        ("skill.deactivated", {"name": "beans"}),
    ]
    site.do("append", run=run, events=events, status="running")
    page = new_page("olga")
    page.goto(f"/runs/{run}/")
    expect(page.locator("#transcript .event")).to_have_text(
        [
            "Skill loaded: beans 1.2 (imported, not reviewed)",
            "Skill loaded: beans (reviewed)",
            "Skill deactivated: beans",
        ]
    )
    page.get_by_text("7 skills were skipped").click()
    expect(page.locator("#transcript details")).to_contain_text("old: There is no head.")
