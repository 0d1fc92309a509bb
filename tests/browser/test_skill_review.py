"""Reviewing a hostile skill in the admin: all content is text, and one answer counts."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage, look, overflow
from tests.support.site import Site

pytestmark = pytest.mark.chromium

HOSTILE = "<script>window.pwned = 1</script><img src=x onerror='window.pwned=1'>"
NAME = "beans-to-review"
URL = "/admin/skills_app/skill/"


def archive(path: Path, body: str, script: str) -> Path:
    text = (
        f"---\nname: {NAME}\ndescription: Counts beans {HOSTILE}\nlicense: {HOSTILE}\n---\n\n"
        f"# Beans {HOSTILE}\n\n{body}\n"
    )
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(f"{NAME}/SKILL.md", text)
        made.writestr(f"{NAME}/scripts/run.py", script)
        made.writestr(f"{NAME}/a' onclick=alert(1) b&lt;.md", HOSTILE)
    return path


def import_it(page: Page, path: Path) -> None:
    page.goto(f"{URL}import/")
    page.get_by_label("A zip or .skill archive").set_input_files(path)
    page.get_by_role("button", name="Preview", exact=True).click()
    expect(page.get_by_role("heading", name=NAME)).to_be_visible()
    expect(page.locator("pre.vel-text").first).to_contain_text("<script>window.pwned")
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text(f"{NAME} v")


def test_a_hostile_package_is_imported_reviewed_and_quarantined(
    site: Site, new_page: NewPage, tmp_path: Path
) -> None:
    site.do("make_user", name="reviewer", admin=True)
    page = new_page("reviewer")
    import_it(page, archive(tmp_path / "one.zip", "Count.", f"print('{HOSTILE}')\n"))
    second = f"Count twice\u202e. {HOSTILE}"
    import_it(page, archive(tmp_path / "two.zip", second, f"# {HOSTILE}\nprint('two\u200b')\n"))

    page.get_by_role("link", name="scripts/run.py").first.click()
    code = page.get_by_role("region", name="The file")
    expect(code).to_contain_text(f"# {HOSTILE}")
    expect(code.locator(".hl-nb").first).to_have_text("print")
    assert page.evaluate("window.pwned") is None

    page.goto(f"{URL}?q={NAME}")
    page.get_by_role("link", name=NAME).click()
    page.get_by_role("link", name="Review it").click()
    main = page.locator("#content-main")
    expect(main).to_contain_text(f"# Beans {HOSTILE}")
    expect(main).to_contain_text("Accept as reviewed")
    expect(main.locator(".mark-hidden").first).to_have_text("⟨U+202E⟩")
    assert page.evaluate("window.pwned") is None
    assert page.locator("#content-main").locator("img, script, [onclick]").count() == 0

    reviewed = page.url
    other = new_page("reviewer")
    other.goto(reviewed)
    page.get_by_role("button", name="Accept as reviewed").click()
    expect(page.locator(".messagelist")).to_contain_text("accepted, as reviewed")
    # The version in the other tab is no longer the current one.
    other.get_by_role("button", name="Accept as reviewed").click()
    expect(other.get_by_role("alert")).to_be_visible()
    other.get_by_role("link", name="Review it again").click()
    other.get_by_label("Reason for the quarantine").fill(f"It lies. {HOSTILE}")
    other.get_by_role("button", name="Put into quarantine").click()
    expect(other.locator(".messagelist")).to_contain_text("in quarantine")
    expect(other.locator("#content-main")).to_contain_text(f"It lies. {HOSTILE}")
    assert other.evaluate("window.pwned") is None


def assert_that_it_fits(page: Page) -> None:
    for width in (1280, 390):
        look(page, width)
        assert overflow(page) == 0, (page.url, width)


@pytest.mark.slow
def test_nothing_is_wider_than_the_window(site: Site, new_page: NewPage, tmp_path: Path) -> None:
    name = "wide"
    site.do("make_user", name=name, admin=True)
    page = new_page(name)
    text = f"---\nname: {name}\ndescription: {'x' * 900}\n---\n\n{'y' * 3_000}\n"
    path = tmp_path / "SKILL.md"
    path.write_text(text)
    page.goto(f"{URL}import/")
    page.get_by_label("A zip or .skill archive").set_input_files(path)
    page.get_by_role("button", name="Preview", exact=True).click()
    # The expected content of each page shows that the right page is measured.
    expect(page.get_by_role("button", name="Import", exact=True)).to_be_visible()
    assert_that_it_fits(page)
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text(f"{name} v")
    assert_that_it_fits(page)
    page.get_by_role("link", name="SKILL.md").first.click()
    expect(page.get_by_role("region", name="The file")).to_be_visible()
    assert_that_it_fits(page)
    page.go_back()
    page.get_by_role("link", name=re.compile("^Review version")).click()
    expect(page.get_by_role("button", name="Accept as reviewed")).to_be_visible()
    assert_that_it_fits(page)
