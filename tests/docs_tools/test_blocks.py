"""Every Python, console and sh block of the documentation works as the page shows it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.docs_tools.blocks import LANGUAGES, ROOT, Block, Step, all_blocks, shows, steps_of
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
from tests.docs_tools.shell_preparations import BEFORE, EXIT_CODES, REPLACED
from tests.support.forking import KEPT
from tests.support.hang import HANG
from tests.support.migrated import copy_sqlite

MOST_READ = ("README.md",)
"""Pages whose Python blocks the default run checks. The slow tests check those of all pages."""


def not_run(block: Block) -> str:
    """Return the reason why a block is not run, or ""."""
    found = (why for (page, start), why in NOT_RUN.items() if is_at(block, page, start))
    return next(found, "")


def is_at(block: Block, page: str, start: str) -> bool:
    return page in {"", block.page} and block.text.startswith(start)


def run_in_python(block: Block) -> bool:
    return block.language == "python" and block.page not in ELSEWHERE and not not_run(block)


PYTHON_PAGES = list(dict.fromkeys(block.page for block in all_blocks() if run_in_python(block)))


@pytest.fixture
def place() -> Iterator[Path]:
    """Yield a fresh directory with `home`, `data` for Vel, and `work`, the current directory."""
    place = Path(tempfile.mkdtemp(prefix="vel-docs-", dir="/var/tmp"))
    place.chmod(0o755)
    for name in ("data", "home", "work"):
        (place / name).mkdir()
    (place / "data").chmod(0o711)
    try:
        copy_sqlite(place / "data" / "vel.sqlite3")
        yield place
    finally:
        shutil.rmtree(place)


def environment(place: Path) -> dict[str, str]:
    """Return the environment of a reader without a key."""
    return {
        **{name: os.environ[name] for name in KEPT if name in os.environ},
        "HOME": str(place / "home"),
        "PYTHONPATH": str(ROOT),
        "PYTHONSAFEPATH": "1",
        "VEL_DATA_DIR": str(place / "data"),
        "REPOSITORY": str(ROOT),
    }


def save_files(page: str, place: Path) -> None:
    """Save the blocks that are files of the reader."""
    for block in all_blocks():
        if block.page == page and block.file_name:
            path = place / "work" / block.file_name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
    others = [token.content for token in MarkdownIt().parse((ROOT / page).read_text())]
    for name, start in FILES.get(page, {}).items():
        (text,) = (other for other in others if other.startswith(start))
        (place / "work" / name).write_text(text)


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
        [sys.executable, "-m", "tests.docs_tools.python_page", "../data/page.json"],
        input=INPUT.get(page, ""),
        env={**environment(place), "VEL_PROVIDER": "scripted"},
        cwd=place / "work",
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
        if not any(is_at(block, page, start) for block in all_blocks())
    ]
    assert unused == []
    pages = {block.page for block in all_blocks() if block.language == "python"}
    assert ELSEWHERE.keys() | PREPARATIONS.keys() <= pages
    unnamed = [
        page for page, test in ELSEWHERE.items() if Path(page).name not in (ROOT / test).read_text()
    ]
    assert unnamed == []


# Console and sh ----------------------------------------------------------------------------------


def run_in_shell(block: Block) -> bool:
    return block.language != "python" and not not_run(block)


SHELL_PAGES = list(dict.fromkeys(block.page for block in all_blocks() if run_in_shell(block)))


def install(place: Path) -> Path:
    """Make `vel` and the environments of the pages in this directory, and return its PATH entry."""
    python = f'#!/bin/sh\nPYTHONPATH="{ROOT}:$PYTHONPATH" exec {sys.executable}'
    programs = {
        "vel": f'{python} -P -m tests.docs_tools.reader_program "$@"\n',
        "python": f'{python} "$@"\n',
        "curl": f'#!/bin/sh\nexec {shutil.which("curl")} -sS --fail-with-body "$@"\n',
        "activate": "",
    }
    for directory in ("env/bin", ".venv/bin", "vel/.venv/bin"):
        (place / directory).mkdir(parents=True)
        for name, text in programs.items():
            (place / directory / name).write_text(text)
            (place / directory / name).chmod(0o755)
    return place / "env/bin"


def check_shell_page(page: str, place: Path, **more: str) -> None:
    """Run the commands of a page in one bash, and compare the output that the page shows."""
    save_files(page, place)
    programs = install(place / "work")
    replaced = REPLACED.get(page, {})
    steps: list[Step] = []
    script = [BEFORE.get(page, "")]
    for block in all_blocks():
        if block.page == page and run_in_shell(block):
            for step in steps_of(block):
                command = step.command
                for old, new in replaced.items():
                    command = command.replace(old, new)
                begin = f"printf '\\036{len(steps)} '\nfailed=0"
                script.append(f"{begin}\n{command}\nprintf '\\037%s\\036' $failed")
                steps.append(step)
    env = {**environment(place), "VEL_PROVIDER": "scripted", "VEL_SCRIPTS_DIR": "/", **more}
    env["PATH"] = f"{programs}:{env['PATH']}"
    done = subprocess.run(
        ["bash", "-c", "exec 2>&1\nset -o pipefail\ntrap 'failed=$?' ERR\n" + "\n".join(script)],
        input=INPUT.get(page, ""),
        env=env,
        cwd=place / "work",
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    problems = []
    found = re.findall(r"\x1e(\d+) (.*?)\x1f(\d+)\x1e", done.stdout, re.DOTALL)
    for number, output, code in found:
        step = steps[int(number)]
        wanted = step.output.replace("/home/ada", str(place / "work"))
        for answer in INPUT.get(page, "").splitlines():
            wanted = wanted.replace(f"] {answer}\n", "] ")
        codes = (
            code
            for (of, start), code in EXIT_CODES.items()
            if of == page and step.command.startswith(start)
        )
        if int(code) != next(codes, 0) or (wanted and not shows(wanted, output)):
            problems.append(f"{page}:{step.line}: {step.command}exit code {code}\n{output[-1500:]}")
    assert not problems, "\n".join(problems)
    assert len(found) == len(steps), done.stdout[-3000:]


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.parametrize("page", SHELL_PAGES)
def test_the_commands_of_a_page_run(page: str, place: Path) -> None:
    check_shell_page(page, place)


# All blocks --------------------------------------------------------------------------------------

SHOWN = {
    "javascript",
    "caddyfile",
    "html",
    "http",
    "json",
    "markdown",
    "nginx",
    "sql",
    "text",
    "tsx",
    "yaml",
    "",
}
"""Languages of blocks that are not programs or commands of the reader."""


def test_each_block_is_run_or_in_a_table() -> None:
    for block in all_blocks():
        elsewhere = block.language == "python" and block.page in ELSEWHERE
        ways = [run_in_python(block), run_in_shell(block), elsewhere or bool(not_run(block))]
        assert ways.count(True) == 1, (str(block), ways)
        if run_in_shell(block):
            assert steps_of(block), str(block)
    assert len(all_blocks()) > 100


def test_each_fence_of_a_page_has_a_known_language() -> None:
    unknown = [
        f"{path.relative_to(ROOT)}: {token.info}"
        for path in ROOT.joinpath("docs").rglob("*.md")
        for token in MarkdownIt().parse(path.read_text())
        if token.type == "fence" and token.info.partition(" ")[0] not in SHOWN | LANGUAGES
    ]
    assert unknown == []
