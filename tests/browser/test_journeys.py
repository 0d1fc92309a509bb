"""Nine journeys through the pages, with their numbers of clicks, typed fields and loaded pages.

Clicks are those on links, buttons and folds, and choices of files or in lists. A change that makes
a journey longer fails here. `docs/contributing/journeys.md` compares the numbers with earlier ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FilePayload, Locator, Page, Request, expect

from tests.browser.conftest import Contexts, NewPage, overflow, shoot
from tests.support.hang import HANG
from tests.support.site import PASSWORD, Site, migrated_site
from tests.support.site_worker import working
from tests.support.skill_zips import zipped

pytestmark = [pytest.mark.chromium, pytest.mark.slow, pytest.mark.timeout(6 * HANG)]

CSV: FilePayload = {
    "name": "rain.csv",
    "mimeType": "text/csv",
    "buffer": b"month,mm\n6,37\n11,180\n",
}
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><rect width="37" height="9"/></svg>'


class Walk:
    """A person's way through pages. It counts clicks, typed fields and loaded pages."""

    def __init__(self, page: Page, name: str) -> None:
        self.page = page
        self.clicks = 0
        self.fields = 0
        self.pages = 0
        self._name = name
        page.on("request", self._count_page)

    def click(self, target: Locator) -> None:
        self._look()
        self.clicks += 1
        target.click()

    def attach(self, target: Locator, file: FilePayload) -> None:
        self.clicks += 1
        target.set_input_files(file)

    def write(self, target: Locator, text: str) -> None:
        self.fields += 1
        target.fill(text)

    def write_message(self, text: str) -> None:
        self.write(self.page.get_by_label("What should it do?"), text)

    def button(self, name: str | re.Pattern[str]) -> None:
        self.click(self.page.get_by_role("button", name=name, exact=True))

    def link(self, name: str | re.Pattern[str]) -> None:
        self.click(self.page.get_by_role("link", name=name, exact=True))

    def end(self) -> tuple[int, int, int]:
        """Return the numbers of clicks, typed fields and loaded pages."""
        self._look()
        return self.clicks, self.fields, self.pages

    def _count_page(self, request: Request) -> None:
        self.pages += request.is_navigation_request() and request.redirected_from is None

    def _look(self) -> None:
        shoot(self.page, f"journey-{self._name}-{self.clicks}")


Start = Callable[..., Walk]


def script(directory: Path, name: str, *turns: tuple[str, str, dict[str, str]]) -> str:
    """Write a script whose turns have a text and a call, and return the name of its model."""
    played = [
        {"text": text, "tool_calls": [{"name": tool, "input": given}] if tool else []}
        for text, tool, given in turns
    ]
    path = directory / f"{name}.json"
    path.write_text(json.dumps({"turns": played}))
    return f"file:{path}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve a new site with one worker, an administrator and the agent `assistant`.

    New agents write a letter.
    """
    directory = tmp_path_factory.mktemp("journeys")
    site = migrated_site(directory)
    letter = {"path": "/sandbox/outputs/letter.md", "content": "Dear Ada\n"}
    site.environment["VEL_MODEL"] = script(
        directory, "letter", ("A letter:", "write_file", letter), ("Written.", "", {})
    )
    try:
        site.do("make_user", name="ann", password=PASSWORD, admin=True)
        site.do("make_agent", slug="assistant", model="echo", name="Assistant")
        site.start_server()
        with working(site):
            yield site
    finally:
        site.close()


@pytest.fixture(scope="module")
def contexts(browser: Browser, site: Site) -> Contexts:
    return Contexts(browser, site.url)


@pytest.fixture
def start(new_page: NewPage) -> Start:
    """A function: `start("fork")` starts a journey of the administrator on the home page."""

    def open_home(name: str, path: str = "/", width: int = 1280) -> Walk:
        page = new_page("ann", width=width)
        page.goto(path)
        return Walk(page, name)

    return open_home


def run_to(start: Start, agent: str, status: str) -> str:
    """Start a run and wait for a status, before a journey. Return the path of the run."""
    page = start(f"before-{agent}", f"/?agent={agent}").page
    page.get_by_label("What should it do?").fill("Do it")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#status")).to_have_text(status)
    return page.url


def completed(walk: Walk) -> Locator:
    """Wait for the end of the run, and return its transcript."""
    expect(walk.page.locator("#status")).to_have_text("completed")
    return walk.page.locator("#transcript")


def test_a_first_run_is_a_sign_in_and_a_message(site: Site, new_page: NewPage) -> None:
    page = new_page()
    page.goto("/")
    walk = Walk(page, "first-run")
    walk.write(page.get_by_label("User name"), "ann")
    walk.write(page.get_by_label("Password"), PASSWORD)
    walk.button("Sign in")
    walk.write_message("What can you do?")
    walk.button("Start")
    expect(completed(walk)).to_contain_text("What can you do?")
    assert walk.end() == (2, 3, 2)


def test_an_agent_with_a_policy_is_created_and_its_request_edited(start: Start) -> None:
    walk = start("policy")
    page = walk.page
    walk.link("New agent")
    writer = page.locator("section", has=page.get_by_role("heading", name="Report writer"))
    walk.write(writer.get_by_label("Tools that require approval"), "write_file")
    walk.click(writer.get_by_role("button", name="Create agent"))
    walk.write_message("Write to Ada")
    walk.button("Start")
    walk.click(page.get_by_text("Edit the content…"))
    walk.write(page.get_by_label("The content of the file"), "Dear Bob\n")
    walk.button("Run with these changes")
    page.get_by_role("button", name="Send now").click()  # it is sent without this click, later
    completed(walk)
    assert walk.end() == (5, 3, 3)


def test_a_table_becomes_a_chart_and_a_download(site: Site, start: Start) -> None:
    chart = {"path": "/sandbox/outputs/chart.svg", "content": SVG}
    model = script(
        site.directory,
        "chart",
        ("I look.", "ls", {"path": "/"}),
        ("I draw.", "write_file", chart),
        ("Here is it.", "", {}),
    )
    site.do("make_agent", slug="analyst", model=model, name="Analyst", builtin_skills=False)
    run_to(start, "analyst", "completed")
    walk = start("chart")
    page = walk.page
    walk.attach(page.locator("#composer input[type=file]"), CSV)
    walk.write_message("Draw it")
    walk.button("Start")
    completed(walk)
    with page.expect_download() as download:
        walk.click(page.locator("#files").get_by_role("link", name="chart.svg"))
    assert download.value.path().read_text() == SVG
    assert walk.end() == (3, 1, 1)


def test_a_memory_is_edited_and_the_edit_undone(site: Site, start: Start) -> None:
    path = "knowledge/preferences.md"
    site.do("make_agent", slug="keeper", model="echo", name="Keeper")
    site.do("remember", path=path, content="Tables.\n", by="ann", agent="keeper")
    walk = start("memory")
    page = walk.page
    walk.link("Knowledge of Keeper")
    walk.link(f"Edit {path}")
    walk.write(page.get_by_label("Content"), "Charts.\n")
    walk.button("Save")
    expect(page.get_by_role("alert")).to_have_text("Saved as revision 2.")
    walk.button("Undo the last change")
    expect(page.get_by_role("alert")).to_contain_text("Restored revision 1")
    assert site.do("remembered", path=path, agent="keeper") == "Tables.\n"
    assert walk.end() == (4, 1, 4)


def test_a_skill_is_imported_and_used(site: Site, start: Start) -> None:
    model = script(
        site.directory,
        "skilled",
        ("I load it.", "load_skill", {"name": "beans"}),
        ("Done.", "", {}),
    )
    site.do("make_agent", slug="cook", model=model, name="Cook")
    walk = start("skill")
    page = walk.page
    walk.link("Skills of Cook")
    package: FilePayload = {"name": "beans.zip", "mimeType": "", "buffer": zipped(name="beans")}
    walk.attach(page.get_by_label("File"), package)
    walk.button("Upload")
    expect(page.get_by_role("switch", name="beans")).to_be_checked()
    walk.link("New run")
    walk.write_message("Count the beans")
    walk.button("Start")
    expect(completed(walk)).to_contain_text("Skill loaded: beans")
    assert walk.end() == (5, 1, 4)


def test_a_run_becomes_a_schedule(start: Start) -> None:
    walk = start("schedule", run_to(start, "assistant", "completed"))
    page = walk.page
    walk.link("Run this at set times")
    expect(page.get_by_label("Message")).to_have_value("Do it")
    walk.button("Create schedule")
    expect(page.get_by_role("alert")).to_have_text("Do it is scheduled.")
    expect(page.get_by_label("Agent")).to_have_value("assistant")
    assert walk.end() == (2, 0, 2)


def test_a_failed_run_is_forked(site: Site, start: Start) -> None:
    model = script(site.directory, "weak", ("Step one.", "ls", {"path": "/"}), ("Two.", "", {}))
    site.do("make_agent", slug="weak", model=model, name="Weak", max_turns=1)
    failed = run_to(start, "weak", "failed")
    walk = start("fork")
    page = walk.page
    walk.link("Fork Do it")
    walk.write(page.get_by_label("Your next message"), "Continue")
    walk.button("Fork and send")
    expect(page.locator(".asked")).to_have_text("Continue")
    assert page.url != failed
    assert walk.end() == (2, 1, 2)
    page.goto(failed)
    expect(page.locator("#retry").get_by_role("link", name="Fork")).to_be_visible()


def test_the_agent_with_the_highest_cost_gets_a_budget(start: Start) -> None:
    run_to(start, "assistant", "completed")
    walk = start("budget")
    page = walk.page
    walk.link("Console")
    walk.click(page.locator("section", has=page.locator("#top-agents")).get_by_role("link").first)
    expect(page.locator("#id_agent")).not_to_have_value("")
    expect(page.locator("#id_period")).to_have_value("month")
    walk.write(page.locator("#id_max_cost"), "20")
    walk.click(page.locator("[name=_save]"))
    expect(page.locator(".messagelist")).to_contain_text("was added")
    assert walk.end() == (3, 1, 3)


def test_a_request_is_approved_on_a_phone(site: Site, start: Start) -> None:
    rules = [{"tool": "write_file", "action": "ask"}]
    model = site.environment["VEL_MODEL"]
    site.do("make_agent", slug="secretary", model=model, name="Secretary", approval_rules=rules)
    run_to(start, "secretary", "waiting")
    walk = start("phone", width=390)
    page = walk.page
    walk.click(page.locator(".attention [data-kind=ask] a"))
    assert overflow(page) == 0
    walk.button("Approve")
    page.get_by_role("button", name="Send now").click()  # it is sent without this click, later
    expect(page.get_by_role("alert").or_(page.locator(".toast"))).to_contain_text("Approved")
    assert walk.end() == (2, 0, 1)
