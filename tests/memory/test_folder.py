"""Folders from untrusted sources, and folders that appear completely or not at all."""

from __future__ import annotations

import os
from collections.abc import ItemsView
from pathlib import Path

import pytest

from memory.folder import InvalidFolder, read_folder, write_folder
from memory.limits import MAX_FILE_BYTES
from memory.paths import MAX_DEPTH, InvalidPath

FILES = {"AGENTS.md": "You count.\r\n", "knowledge/a/b.md": "\ufeffä\n", "skills/x.md": "x"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder, with a secret next to it."""
    (tmp_path / "secret").write_text("secret")
    directory = tmp_path / "memory"
    (directory / "knowledge").mkdir(parents=True)
    (directory / "skills").mkdir()
    return directory


def test_a_written_folder_is_read_back(tmp_path: Path) -> None:
    write_folder(tmp_path / "new", FILES)
    found = read_folder(tmp_path / "new")
    assert {"AGENTS.md": found.prompt, **found.files} == FILES
    assert os.listdir(tmp_path) == ["new"]


def test_an_empty_directory_will_do_and_any_other_will_not(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_folder(tmp_path / "empty", FILES)
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("empty", "file", "link", "no/such"):
        with pytest.raises(InvalidFolder):
            write_folder(tmp_path / name, {"knowledge/other.md": "x"})
    assert sorted(os.listdir(tmp_path)) == ["empty", "file", "link"]
    assert not (tmp_path / "empty/knowledge/other.md").exists()


def test_a_directory_created_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    class Racing(dict[str, str]):
        def items(self) -> ItemsView[str, str]:
            (tmp_path / "new").mkdir()
            (tmp_path / "new/theirs").write_text("x")
            return super().items()

    with pytest.raises(InvalidFolder, match="Another program"):
        write_folder(tmp_path / "new", Racing(FILES))
    assert os.listdir(tmp_path) == ["new"]
    assert os.listdir(tmp_path / "new") == ["theirs"]


@pytest.mark.parametrize("path", ["../x.md", "/etc/x", "knowledge/../../x", "other.md"])
def test_a_name_that_leads_out_writes_nothing(tmp_path: Path, path: str) -> None:
    with pytest.raises(InvalidPath):
        write_folder(tmp_path / "new", {"knowledge/a.md": "x", path: "x"})
    assert os.listdir(tmp_path) == []


def test_other_files_are_reported_and_ignored(folder: Path) -> None:
    (folder / "knowledge/a.md").write_text("a")
    for name in ("tools.json", "README.md"):
        (folder / name).write_text("x")
    (folder / ".git").symlink_to("/etc")
    found = read_folder(folder)
    assert (found.files, found.prompt) == ({"knowledge/a.md": "a"}, None)
    assert found.ignored == [".git", "README.md", "tools.json"]


def test_no_link_is_followed_and_no_special_file_opened(folder: Path, tmp_path: Path) -> None:
    def refused() -> None:
        with pytest.raises(InvalidFolder):
            read_folder(folder)

    place = folder / "knowledge/x.md"
    for target in (tmp_path / "secret", Path("../../secret"), Path("b.md")):
        (folder / "knowledge/b.md").write_text("inside")
        place.symlink_to(target)
        refused()
        place.unlink()
    os.mkfifo(place)
    refused()
    place.unlink()
    place.symlink_to(tmp_path, target_is_directory=True)
    refused()
    place.unlink()
    (folder / "AGENTS.md").symlink_to(tmp_path / "secret")
    refused()
    (folder / "AGENTS.md").unlink()
    (folder / "skills").rmdir()
    (folder / "skills").symlink_to(tmp_path)
    refused()
    (folder / "skills").unlink()
    assert list(read_folder(folder).files) == ["knowledge/b.md"]


@pytest.mark.parametrize(
    "name",
    [
        "knowledge/.hidden",
        "knowledge/a\n.md",
        "knowledge/..\\x.md",
        "knowledge/x .",
        "knowledge/\u202ex.md",
        "knowledge/~",
        "skills/UPPER.md",
        "skills/x.txt",
        "skills/x/SKILL.md",
        "knowledge/" + "d/" * MAX_DEPTH + "x.md",
    ],
)
def test_names_that_no_memory_has(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("x")
    with pytest.raises(InvalidFolder):
        read_folder(folder)


def test_a_name_that_is_not_utf8(folder: Path) -> None:
    (Path(os.fsdecode(os.fsencode(folder / "knowledge") + b"/\xff.md"))).write_text("x")
    with pytest.raises(InvalidFolder):
        read_folder(folder)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"x" * (MAX_FILE_BYTES + 1), b"\xed\xa0\x80"])
def test_content_that_no_memory_has(folder: Path, data: bytes) -> None:
    (folder / "knowledge/x.md").write_bytes(data)
    with pytest.raises(InvalidFolder):
        read_folder(folder)


def test_names_that_differ_only_in_case_are_refused(folder: Path) -> None:
    for name in ("Notes.md", "notes.md"):
        (folder / "knowledge" / name).write_text(name)
    with pytest.raises(InvalidFolder, match="case"):
        read_folder(folder)


def test_too_many_files_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.folder.MAX_FILES", 3)
    for number in range(3):
        (folder / f"knowledge/{number}.md").touch()
    assert len(read_folder(folder).files) == 3
    (folder / "knowledge/3.md").touch()
    with pytest.raises(InvalidFolder, match="more than"):
        read_folder(folder)


def test_a_deep_chain_of_directories_ends_the_reading(folder: Path) -> None:
    here = folder / "knowledge"
    for _ in range(200):
        here = here / "d"
        here.mkdir()
    with pytest.raises(InvalidFolder, match="deeper"):
        read_folder(folder)


def test_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for name in ("missing", "file"):
        with pytest.raises(InvalidFolder, match="no directory"):
            read_folder(tmp_path / name)
