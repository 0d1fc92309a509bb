"""Packages from real directories, including hostile ones."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from skills_app.library.problems import InvalidSkill
from skills_app.library.sources import folder
from skills_app.library.sources.folder import folder_package, read_folder
from skills_app.settings import SkillSettings
from tests.support.packages import make_folder, skill_text


def test_a_folder_is_a_package(tmp_path: Path) -> None:
    place = make_folder(
        tmp_path / "report", {"scripts/run.sh": "#!/bin/sh\n", "a/b.bin": b"\0\xff"}
    )
    (place / "scripts/run.sh").chmod(0o755)
    (place / "empty").mkdir()
    package = read_folder(place)
    assert package.head.name == "report"
    assert package.problems == ()
    assert [(file.path, file.executable) for file in package.files] == [
        ("SKILL.md", False),
        ("a/b.bin", False),
        ("scripts/run.sh", True),
    ]


def test_any_change_gives_another_hash(tmp_path: Path) -> None:
    place = make_folder(tmp_path / "report", {"run.sh": "x"})
    hashes = {read_folder(place).content_hash}
    (place / "run.sh").chmod(0o755)
    hashes.add(read_folder(place).content_hash)
    (place / "run.sh").write_text("y")
    hashes.add(read_folder(place).content_hash)
    (place / "run.sh").rename(place / "go.sh")
    hashes.add(read_folder(place).content_hash)
    assert len(hashes) == 4


@pytest.mark.parametrize("target", ["/etc/passwd", "SKILL.md", "nowhere", "/", ".", "../other"])
@pytest.mark.parametrize("name", ["link", "SKILL.md", "scripts"])
def test_no_link_is_followed(tmp_path: Path, name: str, target: str) -> None:
    make_folder(tmp_path / "other")
    place = make_folder(tmp_path / "report")
    if name == "SKILL.md":
        (place / name).rename(place / "real.md")
    (place / name).symlink_to(target)
    package, problems = folder_package(place)
    assert package is None
    assert [(problem.code, problem.path) for problem in problems] == [("special", name)]
    assert "It is a link" in problems[0].message


def test_the_directory_itself_must_not_be_a_link(tmp_path: Path) -> None:
    make_folder(tmp_path / "report")
    (tmp_path / "link").symlink_to("report")
    with pytest.raises(InvalidSkill, match="name the directory itself"):
        read_folder(tmp_path / "link")


def test_only_plain_files_are_opened(tmp_path: Path) -> None:
    place = make_folder(tmp_path / "report")
    os.mkfifo(place / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place / "socket"))
    if os.geteuid() == 0:
        os.mknod(place / "device", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    problems = {problem.path: problem.message for problem in folder_package(place)[1]}
    assert "a FIFO" in problems["fifo"]
    assert "a socket" in problems["socket"]
    if os.geteuid() == 0:
        assert "a device" in problems["device"]


def test_a_fifo_in_place_of_a_file_does_not_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The FIFO replaces a plain file after the check."""
    place = make_folder(tmp_path / "report", {"plain": "x"})
    os.mkfifo(place / "swapped")
    plain = os.stat(place / "plain")
    looked_at = os.stat

    def before_the_swap(path: str, **more: object) -> os.stat_result:
        return plain if path == "swapped" else looked_at(path, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(folder.os, "stat", before_the_swap)
    (problem,) = folder_package(place)[1]
    assert (problem.path, problem.code) == ("swapped", "special")


def test_a_link_that_takes_the_place_of_a_file_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = make_folder(tmp_path / "report", {"plain": "x"})
    (place / "swapped").symlink_to("/etc/passwd")
    plain = os.stat(place / "plain")
    looked_at = os.stat

    def before_the_swap(path: str, **more: object) -> os.stat_result:
        return plain if path == "swapped" else looked_at(path, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(folder.os, "stat", before_the_swap)
    (problem,) = folder_package(place)[1]
    assert (problem.path, problem.code) == ("swapped", "unreadable")


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    place = make_folder(tmp_path / "report")
    with (place / "huge").open("wb") as stream:
        stream.truncate(1 << 40)
    (problem,) = folder_package(place)[1]
    assert (problem.path, problem.code) == ("huge", "too_large")
    with (place / "SKILL.md").open("ab") as stream:
        stream.truncate(1 << 40)
    found = folder_package(place)[1]
    assert {problem.path for problem in found} == {"huge", "SKILL.md"}


def test_too_much_in_all(tmp_path: Path) -> None:
    limits = SkillSettings.now()
    place = make_folder(tmp_path / "report")
    for number in range(3):
        with (place / f"f{number}").open("wb") as stream:
            stream.truncate(limits.FILE_BYTES)
    (place / "later").symlink_to("/")
    (problem,) = folder_package(place)[1]  # not the link, because reading stopped here
    assert (problem.path, problem.code) == ("", "too_large")


@pytest.mark.parametrize("kind", ["files", "directories", "deep"])
def test_too_many(tmp_path: Path, kind: str) -> None:
    limits = SkillSettings.now()
    place = make_folder(tmp_path / "report")
    if kind == "files":
        for number in range(limits.FILES):
            (place / f"f{number}").touch()
    elif kind == "directories":
        for number in range(2 * limits.FILES):
            (place / f"f{number}").mkdir()
    else:
        (place / Path(*"abcdefghijkl")).mkdir(parents=True)
    (problem,) = folder_package(place)[1]
    assert problem.code == ("path" if kind == "deep" else "too_many")


def test_files_left_by_tools_are_omitted(tmp_path: Path) -> None:
    clean = read_folder(make_folder(tmp_path / "report", {"run.py": "x"}))
    place = make_folder(
        tmp_path / "report",
        {
            ".git/config": "x",
            "__pycache__/run.cpython-311.pyc": b"\0",
            "run.pyc": b"\0",
            ".DS_Store": b"\0",
            "sub/node_modules/a.js": "x",
            "._SKILL.md": b"\0",
        },
    )
    package = read_folder(place)
    assert [problem.code for problem in package.problems] == ["left_out"]
    assert package.content_hash == clean.content_hash


def test_names_that_are_not_text_are_refused(tmp_path: Path) -> None:
    place = make_folder(tmp_path / "report")
    Path(os.fsdecode(os.fsencode(place) + b"/\xff.md")).touch()
    (place / "a\nb").touch()
    (place / "A").touch()
    (place / "a").touch()
    with pytest.raises(InvalidSkill) as refusal:
        read_folder(place)
    assert {problem.code for problem in refusal.value.problems} == {"path", "collision"}
    str(refusal.value).encode()


def test_places_that_are_not_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    for name, words in (
        ("nowhere", "does not exist"),
        ("file", "Not a directory"),
        ("empty", "Missing required file: SKILL.md"),
        ("a\0b", "cannot be read"),
    ):
        with pytest.raises(InvalidSkill, match=words):
            read_folder(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="needs an ordinary account")
def test_an_unreadable_file_is_a_problem(tmp_path: Path) -> None:
    place = make_folder(tmp_path / "report", {"secret": "x"})
    (place / "secret").chmod(0)
    assert [problem.code for problem in folder_package(place)[1]] == ["unreadable"]


def test_reading_leaves_no_open_files_and_writes_nothing(tmp_path: Path) -> None:
    place = make_folder(tmp_path / "report", {"a/b/c": "x"})
    (place / "link").symlink_to("/")
    before = sorted(map(str, tmp_path.rglob("*"))), len(os.listdir("/proc/self/fd"))
    folder_package(place)
    assert (sorted(map(str, tmp_path.rglob("*"))), len(os.listdir("/proc/self/fd"))) == before


def test_the_current_directory_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(make_folder(tmp_path / "report"))
    assert read_folder(Path()).problems == ()
    assert skill_text("report") == read_folder(Path("../report")).text
