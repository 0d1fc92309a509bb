"""The output and the exit code of `vel skills validate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.packages import make_folder, make_zip, skill_text
from tests.velproject.command import Vel


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "skills").mkdir()
    return tmp_path / "skills"


def test_a_good_package(vel: Vel, place: Path) -> None:
    done = vel("skills", "validate", str(make_folder(place / "report")), "--strict")
    assert (done.returncode, done.stdout) == (0, f"{place}/report: valid\n")
    assert "0 errors, 0 warnings" in done.stderr


def test_warnings_fail_only_when_strict(vel: Vel, place: Path) -> None:
    package = make_folder(place / "other", {"SKILL.md": skill_text("report")})
    done = vel("skills", "validate", "other", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "accepted, with warnings" in done.stdout
    assert "warning: Directory name 'other' must match skill name report" in done.stdout
    assert "--strict" in done.stderr
    assert vel("skills", "validate", "--strict", str(package)).returncode == 1


def test_errors_are_printed_together_and_safely(vel: Vel, place: Path) -> None:
    package = make_folder(place / "bad", {"SKILL.md": "---\nname: a\n---\n", "a\x1b[2Jb": ""})
    (package / "link").symlink_to("/etc/passwd")
    done = vel("skills", "validate", str(package))
    assert done.returncode == 1
    assert done.stdout.count("  error: ") == 4
    assert "\x1b" not in done.stdout
    assert "root:" not in done.stdout
    (row,) = map(json.loads, vel("skills", "validate", str(package), "--json").stdout.splitlines())
    assert (row["path"], row["valid"]) == (str(package), False)
    assert {problem["code"] for problem in row["problems"]} == {
        "special",
        "path",
        "description",
        "body",
    }


def test_a_directory_of_many(vel: Vel, place: Path) -> None:
    make_folder(place / "one")
    make_folder(place / "group/two")
    make_folder(place / "zwei", {"SKILL.md": skill_text("two")})
    make_folder(place / "bad", {"SKILL.md": "x"})
    done = vel("skills", "validate", str(place), "--json")
    assert done.returncode == 1
    rows = {row["path"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert {path.removeprefix(f"{place}/"): row["valid"] for path, row in rows.items()} == {
        "bad": False,
        "group/two": True,
        "one": True,
        "zwei": False,
    }
    assert rows[f"{place}/zwei"]["problems"][0]["code"] == "name_taken"


def test_archives_and_single_files_are_read_and_missing_places_refused(
    vel: Vel, place: Path
) -> None:
    (place / "good.skill").write_bytes(make_zip())
    (place / "evil.zip").write_bytes(make_zip({"../x": "", "SKILL.md": skill_text()}))
    (place / "SKILL.md").write_text(skill_text())
    assert vel("skills", "validate", str(place / "good.skill"), "--strict").returncode == 0
    assert vel("skills", "validate", str(place / "SKILL.md"), "--strict").returncode == 0
    done = vel("skills", "validate", str(place / "evil.zip"))
    assert (done.returncode, "lead out" in done.stdout) == (1, True)
    done = vel("skills", "validate", "nowhere")
    assert (done.returncode, "does not exist" in done.stdout) == (1, True)
    assert sorted(path.name for path in place.iterdir()) == ["SKILL.md", "evil.zip", "good.skill"]
