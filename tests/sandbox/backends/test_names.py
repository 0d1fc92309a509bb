"""Hostile names are readable, hide nothing, and name their own file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.backends import StateFilesystemBackend, TreeBackend
from sandbox.backends.names import meant, shown
from sandbox.hidden import HIDDEN_RANGES
from tests.sandbox.backends.subjects import Subject

HOSTILE = (
    "line\nbreak.txt",
    "bell\x07 and \x1b[2K\x1b[1A cleared",
    "tab\tand\rreturn",
    "report\u202efdp.exe",
    "zero\u200bwidth",
    "c1 \x9b31m",
    "tag\U000e0041",
    "separator\u2028here",
    r"looks like \u000a one",
    r"and \u005cu000a like two",
    "back\\slash",
)


def is_unseen(character: str) -> bool:
    code = ord(character)
    return character in "\t\n" or any(first <= code <= last for first, last in HIDDEN_RANGES)


PIECES = st.sampled_from(["\\", "u", "U", "000a", "0000", "005c", "202e", "\n", "\u202e", "é", "x"])


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.lists(PIECES).map("".join))
def test_a_displayed_name_hides_nothing_and_names_the_same_file(name: str) -> None:
    text = shown(name)
    assert not any(map(is_unseen, text))
    assert meant(text) == name
    assert shown(meant(text)) == text


@given(st.text() | st.lists(PIECES).map("".join))
def test_only_unseen_characters_come_from_an_escape(path: str) -> None:
    """No spelling of a path names other directories than it shows."""
    text = meant(path)
    assert text.count("/") == path.count("/")
    assert text.count(".") == path.count(".")


@pytest.mark.parametrize("name", HOSTILE)
def test_every_result_shows_the_name_and_every_tool_accepts_it(subject: Subject, name: str) -> None:
    backend = subject.backend
    subject.put(shown(name), "one marker\n")
    [entry] = backend.ls(subject.home)["entries"]
    path = entry["path"]
    assert (entry["name"], path) == (shown(name), subject.at(shown(name)))
    assert ("note" in entry) == (entry["name"] != name)
    assert backend.glob(f"{subject.home.rstrip('/')}/**")["matches"] == [path]
    assert backend.glob(path)["matches"] == [path]
    found = backend.grep("marker", subject.home)["matches"]
    assert [match["file"] for match in found] == [path]
    assert backend.read_file(path)["path"] == path
    assert backend.edit_file(path, "marker", "mark")["path"] == path
    assert backend.write_file(path, "two\n")["path"] == path
    assert backend.read_bytes(path, 100) == b"two\n"
    assert len(backend.ls(subject.home)["entries"]) == 1
    missing = json.dumps(backend.read_file(f"{path}.missing"), ensure_ascii=False)
    assert not any(map(is_unseen, missing))


@pytest.mark.parametrize("name", HOSTILE[:8])
def test_a_name_without_escapes_is_accepted_too(subject: Subject, name: str) -> None:
    subject.backend.write_file(subject.at(name), "x\n")
    assert subject.backend.read_file(subject.at(shown(name)))["path"] == subject.at(shown(name))
    assert subject.backend.glob(subject.at(name))["matches"] == [subject.at(shown(name))]


def test_the_file_on_disk_has_the_original_name(tmp_path: Path) -> None:
    backend = TreeBackend(tmp_path)
    backend.write_file("a\\u000ab/c\\u202e.txt", "x")
    assert [path.name for path in tmp_path.iterdir()] == ["a\nb"]
    assert [path.name for path in (tmp_path / "a\nb").iterdir()] == ["c\u202e.txt"]


def test_a_long_name_of_unseen_characters_can_be_read(tmp_path: Path) -> None:
    name = "\u202e" * 80
    (tmp_path / name).write_text("x\n")
    backend = TreeBackend(tmp_path)
    [entry] = backend.ls("/")["entries"]
    assert len(entry["path"]) > 255
    assert "error" not in backend.read_file(entry["path"])


def test_a_name_that_is_not_utf_8_is_shown_and_has_no_path(tmp_path: Path) -> None:
    os.mkdir(os.fsencode(tmp_path) + b"/\xff\x1b[31m\n")
    [entry] = TreeBackend(tmp_path).ls("/")["entries"]
    assert entry["name"] == r"\xff\u001b[31m\u000a"
    assert entry["path"] is None
    assert "rename" in entry["note"]


@pytest.mark.parametrize("path", [r"a\u0000b", r"a\ud800b", r"\udcff"])
def test_escapes_of_characters_that_no_name_can_have_are_refused(tmp_path: Path, path: str) -> None:
    for backend in (TreeBackend(tmp_path), StateFilesystemBackend()):
        assert "error" in backend.write_file(path, "x")
    assert list(tmp_path.iterdir()) == []
