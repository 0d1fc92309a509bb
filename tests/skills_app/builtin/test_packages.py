"""The packages themselves: their format, size and references, and that their scripts start."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skills_app.library.scan import scan_package
from skills_app.library.sources.folder import folder_package
from skills_app.library.validator import validate
from skills_app.settings import SkillSettings
from tests.skills_app.builtin.desk import BUILTIN, NAMES, Desk

SIX = [
    "csv-analytics", "data-query", "decision-workflow", "pdf-processing", "reporting", "research",
]  # fmt: skip
_LINK = re.compile(r"\]\(([^)#]+)\)")
_NAMED = re.compile(r"`(assets/[\w.-]+|[a-z_]+\.py)\b")


def test_the_package_has_six_skills() -> None:
    assert NAMES == SIX


@pytest.mark.parametrize("name", SIX)
def test_the_validator_finds_nothing_to_change(name: str) -> None:
    assert validate(BUILTIN / name) == []


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", SIX)
def test_the_scan_finds_only_notes(name: str) -> None:
    package, _ = folder_package(BUILTIN / name)
    assert package is not None
    found = scan_package(package)
    assert [finding for finding in found if finding.severity != "note"] == []


@pytest.mark.parametrize("name", SIX)
def test_the_head_is_short_and_complete(name: str) -> None:
    package, _ = folder_package(BUILTIN / name)
    assert package is not None
    head = package.head
    assert head.name == name
    assert 80 <= len(head.description) <= 160
    assert (head.author, head.version) == ("Vel", "1.0")
    assert head.tags
    assert head.triggers
    assert head.tools_required == ("execute",)
    assert head.allowed_tools is None, "narrowing would take away the file tools and the plan"
    assert len(package.text.splitlines()) < 150


def test_the_catalogue_of_them_takes_a_small_part_of_its_budget() -> None:
    heads = [folder_package(BUILTIN / name)[0].head for name in SIX]  # type: ignore[union-attr]
    size = sum(len(head.name.encode()) + len(head.description.encode()) for head in heads)
    assert size < SkillSettings.now().CATALOGUE_BYTES / 4


@pytest.mark.parametrize("name", SIX)
def test_every_named_file_exists(name: str) -> None:
    for document in (BUILTIN / name).rglob("*.md"):
        if document.parent.name == "assets":
            continue
        text = document.read_text()
        for target in _LINK.findall(text):
            assert (document.parent / target).is_file(), (document.name, target)
        for named in _NAMED.findall(text):
            directory = "" if named.startswith("assets/") else "scripts"
            assert (BUILTIN / name / directory / named).is_file(), (document.name, named)
    instructions = (BUILTIN / name / "SKILL.md").read_text()
    for reference in (BUILTIN / name / "references").iterdir():
        assert f"references/{reference.name}" in instructions, "nobody would find it"


def test_the_copies_of_the_shared_module_are_the_same() -> None:
    copies = {(BUILTIN / name / "scripts/outcome.py").read_text() for name in SIX}
    assert len(copies) == 1


def executables() -> list[Path]:
    return sorted(
        path
        for path in BUILTIN.glob("*/scripts/*.py")
        if 'if __name__ == "__main__":' in path.read_text()
    )


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_every_script_has_help_and_reports_wrong_arguments(desk: Desk) -> None:
    scripts = [f"/sandbox/skills/{path.relative_to(BUILTIN)}" for path in executables()]
    assert len(scripts) == 15
    calls = " ".join(scripts)
    told = desk.run(f"for s in {calls}; do python3 $s --help || echo FAILED $s; done")
    assert told.stdout.count("usage:") == len(scripts), told.stderr
    assert "FAILED" not in told.stdout
    wrong = desk.run(f"for s in {calls}; do python3 $s --no-such-option; echo code $?; done")
    assert wrong.stdout.split() == ["code", "2"] * len(scripts)


@pytest.mark.bubblewrap
def test_scripts_leave_no_files_next_to_themselves_or_the_input(desk: Desk) -> None:
    """Both directories are read-only, and the scripts must not need to write there."""
    path = desk.upload("a.csv", "a,b\n1,2\n")
    assert desk.script("csv-analytics/profile_csv.py", path).exit_code == 0
    assert desk.script("csv-analytics/clean_csv.py", path, "--output", path).exit_code == 2
    beside = desk.script("csv-analytics/clean_csv.py", path, "--output", f"{path}.clean")
    assert beside.exit_code == 2
    assert "/sandbox/outputs" in beside.stderr
    found = desk.run("find /sandbox/skills -name __pycache__; ls /sandbox/user_uploads")
    assert found.stdout == "a.csv\n"


@pytest.mark.bubblewrap
def test_the_short_path_works_too(desk: Desk) -> None:
    path = desk.upload("a.csv", "a,b\n1,2\n")
    result = desk.run(f"python3 /skills/csv-analytics/scripts/profile_csv.py {path}")
    assert "1 rows, 2 columns" in result.stdout
