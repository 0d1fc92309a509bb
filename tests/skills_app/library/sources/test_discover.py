"""Finding the packages in a directory of skills."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.test import override_settings

from skills_app.library.problems import InvalidSkill
from skills_app.library.sources import discover
from skills_app.library.sources.discover import find_packages, read_directory
from skills_app.settings import SkillSettings
from tests.support.packages import make_folder, skill_text


def test_packages_are_found_at_every_depth_but_not_in_packages(tmp_path: Path) -> None:
    make_folder(tmp_path / "b", {"nested/SKILL.md": skill_text("nested")})
    make_folder(tmp_path / "a")
    make_folder(tmp_path / "group/inner/c")
    (tmp_path / "README.md").touch()
    make_folder(tmp_path / ".git/d")
    make_folder(tmp_path / "node_modules/e")
    make_folder(tmp_path / Path(*"ABCDEFGHIJ") / "deep")
    assert find_packages(tmp_path) == [
        tmp_path / "a",
        tmp_path / "b",
        tmp_path / "group/inner/c",
    ]
    packages, problems = read_directory(tmp_path)
    assert [package.head.name for package in packages] == ["a", "b", "c"]
    assert problems == {}


def test_a_directory_that_is_itself_a_package(tmp_path: Path) -> None:
    place = make_folder(tmp_path / "report")
    assert find_packages(place) == [place]
    (package,), problems = read_directory(place)
    assert (package.problems, problems) == ((), {})


def test_a_bad_package_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    make_folder(tmp_path / "good")
    make_folder(tmp_path / "bad", {"SKILL.md": "no head"})
    linked = make_folder(tmp_path / "linked")
    (linked / "SKILL.md").unlink()
    (linked / "SKILL.md").symlink_to("/etc/passwd")
    packages, problems = read_directory(tmp_path)
    assert [package.head.name for package in packages] == ["good"]
    assert {place: found[0].code for place, found in problems.items()} == {
        "bad": "head",
        "linked": "special",
    }


def test_of_two_with_one_name_the_first_by_path_keeps_it(tmp_path: Path) -> None:
    make_folder(tmp_path / "b", {"SKILL.md": skill_text("Weekly Sums", "The second.")})
    make_folder(tmp_path / "a", {"SKILL.md": skill_text("weekly-sums", "The first.")})
    (package,), problems = read_directory(tmp_path)
    assert package.head.description == "The first."
    assert [problem.code for problem in problems["b"]] == ["name_taken"]
    assert "a is already called weekly-sums" in problems["b"][0].message


def test_no_link_is_followed(tmp_path: Path) -> None:
    outside = make_folder(tmp_path / "outside/x")
    place = tmp_path / "skills"
    make_folder(place / "good")
    (place / "linked").symlink_to(outside)
    (place / "up").symlink_to("..")
    (place / "CLAUDE.md").symlink_to("/etc/passwd")
    assert find_packages(place) == [place / "good"]
    packages, problems = read_directory(place)
    assert [package.head.name for package in packages] == ["good"]
    assert {path: found[0].code for path, found in problems.items()} == {
        "linked": "link",
        "up": "link",
    }


def test_a_directory_that_was_named_may_be_a_link(tmp_path: Path) -> None:
    make_folder(tmp_path / "skills/a")
    (tmp_path / "link").symlink_to("skills")
    assert find_packages(tmp_path / "link") == [tmp_path / "link/a"]


def test_a_directory_replaced_by_a_link_is_not_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = make_folder(tmp_path / "outside/x").parent
    place = tmp_path / "skills"
    make_folder(place / "a/x")
    opened = os.open

    def swap_first(path: str, *arguments: int, **more: int) -> int:
        if path == "a":
            (place / "a").rename(tmp_path / "away")
            (place / "a").symlink_to(outside)
        return opened(path, *arguments, **more)

    monkeypatch.setattr(discover.os, "open", swap_first)
    packages, problems = read_directory(place)
    assert packages == []
    assert [problem.code for problem in problems["a"]] == ["unreadable"]


def test_an_unreadable_directory_is_reported(tmp_path: Path) -> None:
    assert [problem.code for problem in read_directory(tmp_path / "nowhere")[1][""]] == ["missing"]
    with pytest.raises(InvalidSkill, match="does not exist"):
        find_packages(tmp_path / "nowhere")
    for number in range(SkillSettings.now().DIRECTORY_SKILLS + 1):
        (tmp_path / f"s{number}").mkdir()
        (tmp_path / f"s{number}/SKILL.md").touch()
    with pytest.raises(InvalidSkill, match="more than 500 skills"):
        find_packages(tmp_path)
    assert [problem.code for problem in read_directory(tmp_path)[1][""]] == ["too_many"]
    with (
        override_settings(VEL_SKILLS={"DIRECTORY_ENTRIES": 100}),
        pytest.raises(InvalidSkill, match="more than 100 files"),
    ):
        find_packages(tmp_path)


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    make_folder(tmp_path / "a/b/c")
    make_folder(tmp_path / "bad", {"SKILL.md": "x"})
    before = len(os.listdir("/proc/self/fd"))
    find_packages(tmp_path)
    read_directory(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before
