"""Every Python, console and sh block of the documentation works as the page shows it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.docs_tools.blocks import ROOT, Block, all_blocks
from tests.docs_tools.not_run import NOT_RUN
from tests.docs_tools.python_preparations import (
    ELSEWHERE,
    FILES,
    FILES_OF,
    FIRST,
    INPUT,
    LAST,
    PREPARATIONS,
)
from tests.support.forking import KEPT
from tests.support.hang import HANG
from tests.support.migrated import copy_sqlite

MOST_READ = ("README.md", "docs/getting-started/python.md")
"""Pages whose Python blocks `make test` runs."""


def not_run(block: Block) -> str:
    """Return the reason why a block is not run, or ""."""
    found = (why for (page, start), why in NOT_RUN.items() if is_at(block, page, start))
    return next(found, "")


def is_at(block: Block, page: str, start: str) -> bool:
    return block.page == page and block.text.startswith(start)


def run_in_python(block: Block) -> bool:
    return block.language == "python" and block.page not in ELSEWHERE and not not_run(block)


PYTHON_PAGES = list(dict.fromkeys(block.page for block in all_blocks() if run_in_python(block)))


@pytest.fixture
def place() -> Iterator[Path]:
    """Yield a fresh directory with the directory `data` for Vel. Sandboxes can reach both."""
    place = Path(tempfile.mkdtemp(prefix="vel-docs-", dir="/var/tmp"))
    place.chmod(0o755)
    (place / "data").mkdir(mode=0o711)
    try:
        copy_sqlite(place / "data" / "vel.sqlite3")
        yield place
    finally:
        shutil.rmtree(place)


def environment(place: Path) -> dict[str, str]:
    """Return the environment of a reader without a key."""
    return {
        **{name: os.environ[name] for name in KEPT if name in os.environ},
        "HOME": str(place),
        "PYTHONPATH": str(ROOT),
        "PYTHONSAFEPATH": "1",
        "VEL_DATA_DIR": str(place / "data"),
        "FOREIGN_PROJECT": str(ROOT / "tests" / "foreign_project"),
    }


def save_files(page: str, place: Path) -> None:
    """Save the blocks that are files of the reader."""
    for block in all_blocks():
        if block.page == page and block.file_name:
            path = place / block.file_name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
    others = [token.content for token in MarkdownIt().parse((ROOT / page).read_text())]
    for name, start in FILES.get(page, {}).items():
        (text,) = (other for other in others if other.startswith(start))
        (place / name).write_text(text)


def pieces(page: str) -> Iterator[dict[str, object]]:
    """Yield the code of a page in order, with the preparations between."""
    given = dict(PREPARATIONS.get(page, {}))

    def prepared(start: str) -> dict[str, object]:
        return {"name": f"preparation of {page}", "line": 0, "text": given.pop(start)}

    if FIRST in given:
        yield prepared(FIRST)
    for block in all_blocks():
        if block.page == page and run_in_python(block):
            starts = [start for start in given if block.text.startswith(start)]
            yield from map(prepared, starts)
            yield {"name": page, "line": block.line, "text": block.text}
    if LAST in given:
        yield prepared(LAST)
    assert not given, f"no block of {page} starts like this: {list(given)}"


def check_python_page(page: str, place: Path) -> None:
    save_files(page, place)
    if page in FILES_OF:
        save_files(FILES_OF[page], place)
    (place / "data" / "page.json").write_text(json.dumps(list(pieces(page))))
    done = subprocess.run(
        [sys.executable, "-m", "tests.docs_tools.python_page", "data/page.json"],
        input=INPUT.get(page, ""),
        env={**environment(place), "VEL_PROVIDER": "scripted"},
        cwd=place,
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"


@pytest.mark.parametrize("page", [page for page in PYTHON_PAGES if page in MOST_READ])
def test_the_python_blocks_of_a_most_read_page_run(page: str, place: Path) -> None:
    check_python_page(page, place)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PYTHON_PAGES if page not in MOST_READ])
def test_the_python_blocks_of_a_page_run(page: str, place: Path) -> None:
    check_python_page(page, place)


def test_an_entry_of_the_tables_matches_a_block_of_its_page() -> None:
    unused = [
        (page, start)
        for page, start in NOT_RUN
        if sum(is_at(block, page, start) for block in all_blocks()) != 1
    ]
    assert unused == []
    pages = {block.page for block in all_blocks() if block.language == "python"}
    assert ELSEWHERE.keys() | PREPARATIONS.keys() <= pages
    unnamed = [
        page for page, test in ELSEWHERE.items() if Path(page).name not in (ROOT / test).read_text()
    ]
    assert unnamed == []
