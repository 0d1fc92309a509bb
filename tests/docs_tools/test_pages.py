"""Every page of the documentation can be found, and the code names pages that exist.

`make docs` checks the links between the pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
NO_SOURCES = {"docs", "site", "tests", "client"}
"""Directories whose files name other documents. Those of tests fail by themselves."""
MENTION = re.compile(r"(?<![\w/.-])docs/([\w./-]+\.(?:md|json|yml))(?:#([\w-]+))?")


def sources() -> Iterator[Path]:
    for top in ROOT.iterdir():
        if top.is_file() and top.suffix in {".md", ".toml", ""}:
            yield top
        elif top.is_dir() and not top.name.startswith(".") and top.name not in NO_SOURCES:
            # The conformance tests of backends have files of such names.
            found = (path for path in top.rglob("*.*") if "testing" not in path.parts)
            yield from (path for path in found if path.suffix in {".py", ".html", ".json", ".md"})


def anchors(page: str) -> set[str]:
    """Return the anchors of the headings of a page, as the site and code hosts make them."""
    text = re.sub(r"^```.*?^```", "", (DOCS / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)", text, flags=re.MULTILINE)
    return {
        re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


def test_the_menu_has_every_page_once() -> None:
    menu = re.findall(
        r"^ +- (?:\w+: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.MULTILINE
    )
    assert sorted(menu) == sorted(PAGES)


@pytest.mark.parametrize("index", sorted(page for page in PAGES if page.endswith("/index.md")))
def test_an_index_links_to_every_page_of_its_directory(index: str) -> None:
    directory = (DOCS / index).parent
    links = set(re.findall(r"\]\(([\w/-]+\.md)\)", (DOCS / index).read_text()))
    assert {path.name for path in directory.glob("*.md")} - {"index.md"} <= links


def test_the_pictures_and_files_that_a_page_shows_exist() -> None:
    wrong = [
        f"{page}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([\w./-]+)\)", (DOCS / page).read_text())
        if not (DOCS / page).parent.joinpath(target).is_file()
    ]
    assert wrong == []


def test_the_code_names_pages_and_anchors_that_exist() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {mention[0]}"
        for path in sources()
        for mention in MENTION.finditer(path.read_text())
        if not (DOCS / mention[1]).exists()
        or (mention[2] and mention[2] not in anchors(mention[1]))
    ]
    assert wrong == []


def test_the_reference_lists_each_permission_that_a_page_names() -> None:
    reference = (DOCS / "reference/permissions.md").read_text()
    ticked = {
        f"{app}.{action}_{name}"
        for app, name, *ticks in re.findall(
            r"^\| `(\w+)` \| `(\w+)` \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$",
            reference,
            re.MULTILINE,
        )
        for action, tick in zip(("view", "add", "change", "delete"), ticks, strict=True)
        if tick
    }
    named = {
        name
        for page in PAGES - {"contributing/features.md"}
        for name in re.findall(
            r"`((?:agents|memory|skills_app|vel_\w+)\.(?:view|add|change|delete)_[a-z]+)`",
            (DOCS / page).read_text(),
        )
    }
    assert named - ticked == set()


def test_the_settings_list_each_system_check() -> None:
    page = (DOCS / "reference/settings.md").read_text()
    listed = set(re.findall(r"`(vel\.[EW]\d{3})`", page))
    for kind, first, last in re.findall(r"`vel\.([EW])(\d{3})` to `vel\.\1(\d{3})`", page):
        listed |= {f"vel.{kind}{number:03}" for number in range(int(first), int(last) + 1)}
    in_code = {
        check
        for package in ("agents", "memory", "skills_app", "velproject")
        for path in (ROOT / package).rglob("*.py")
        for check in re.findall(r"\bvel\.[EW]\d{3}\b", path.read_text())
    }
    assert in_code - listed == set()
