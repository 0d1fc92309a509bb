"""write_file, edit_file and write_bytes: the same for every backend."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandbox.errors import FileChanged, IsDirectory, NotDirectory
from tests.sandbox.backends.subjects import Subject


def content(subject: Subject, path: str) -> bytes:
    return subject.backend.read_bytes(path, 10**6)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_write_file_creates_parents_and_overwrites(subject: Subject) -> None:
    path = subject.at("a/b/c.txt")

    assert subject.backend.write_file(path, "one\ntwo") == {
        "status": "ok",
        "path": path,
        "lines": 2,
        "size_bytes": 7,
    }
    assert subject.backend.write_file(path, "é\n")["size_bytes"] == 3
    assert content(subject, path) == "é\n".encode()


def test_relative_paths_start_in_the_working_directory(subject: Subject) -> None:
    written = subject.backend.write_file("notes/a.md", "x")

    assert written["path"] == f"{subject.backend.cwd.rstrip('/')}/notes/a.md"
    assert subject.backend.read_file("./notes//b/../a.md")["path"] == written["path"]


def test_a_directory_is_not_overwritten_and_a_file_contains_no_files(subject: Subject) -> None:
    path = subject.put("dir/a.txt", "x")

    assert "directory" in subject.backend.write_file(subject.at("dir"), "y")["error"]
    assert "error" in subject.backend.write_file(subject.home, "y")
    assert "error" in subject.backend.write_file(path + "/below", "y")
    with pytest.raises(IsDirectory):
        subject.backend.write_bytes(subject.at("dir"), b"y")
    with pytest.raises(NotDirectory):
        subject.backend.write_bytes(path + "/below/deeper", b"y")
    assert content(subject, path) == b"x"


def test_text_that_is_too_long_or_not_unicode_is_refused(subject: Subject) -> None:
    subject.limit(edit=10)

    assert "at most 10" in subject.backend.write_file(subject.at("a"), "x" * 11)["error"]
    assert "Unicode" in subject.backend.write_file(subject.at("a"), "ok \ud800")["error"]
    assert subject.backend.stat(subject.at("a")) is None


def test_edit_replaces_the_only_match(subject: Subject) -> None:
    path = subject.put("a.txt", "one\ntwo\nthree\n")

    assert subject.backend.edit_file(path, "two\n", "2\nzwei\n") == {
        "status": "ok",
        "path": path,
        "lines_changed": 2,
        "replacements": 1,
    }
    assert content(subject, path) == b"one\n2\nzwei\nthree\n"


def test_an_ambiguous_edit_is_refused_with_the_count_and_advice(subject: Subject) -> None:
    path = subject.put("a.txt", "x = 1\nx = 1\nx = 1\n")

    error = subject.backend.edit_file(path, "x = 1", "x = 2")["error"]

    assert "3 times" in error
    assert "replace_all" in error
    assert content(subject, path) == b"x = 1\nx = 1\nx = 1\n"


def test_overlapping_matches_are_ambiguous(subject: Subject) -> None:
    path = subject.put("a.txt", "aaa")

    assert "2 times" in subject.backend.edit_file(path, "aa", "b")["error"]


def test_replace_all_replaces_every_match(subject: Subject) -> None:
    path = subject.put("a.txt", "x = 1\nx = 1\n")

    assert subject.backend.edit_file(path, "x", "y", replace_all=True)["replacements"] == 2
    assert content(subject, path) == b"y = 1\ny = 1\n"


@pytest.mark.parametrize(
    ("old", "new", "advice"),
    [
        ("missing", "x", "copy the text exactly"),
        ("  def f():", "x", "white space"),
        ("     1 | def f():", "x", "line numbers"),
        ("", "x", "write_file"),
        ("pass", "pass", "same"),
    ],
)
def test_an_impossible_edit_names_the_solution(
    subject: Subject, old: str, new: str, advice: str
) -> None:
    path = subject.put("a.py", "def f():\n    pass\n")

    assert advice in subject.backend.edit_file(path, old, new)["error"]
    assert content(subject, path) == b"def f():\n    pass\n"


def test_an_edit_keeps_crlf(subject: Subject) -> None:
    path = subject.put("a.txt", b"one\r\ntwo\r\nthree\r\n")

    assert "error" not in subject.backend.edit_file(path, "one\ntwo", "1\n2\n2b")
    assert "error" not in subject.backend.edit_file(path, "three", "3\n4")
    assert content(subject, path) == b"1\r\n2\r\n2b\r\n3\r\n4\r\n"


def test_an_edit_of_mixed_line_breaks_changes_only_the_match(subject: Subject) -> None:
    path = subject.put("a.txt", b"one\r\ntwo\nthree\r\nfour\n")

    assert "error" not in subject.backend.edit_file(path, "three\nfour", "3\n4")
    assert content(subject, path) == b"one\r\ntwo\n3\r\n4\n"


def test_binary_and_undecodable_files_are_not_edited(subject: Subject) -> None:
    for data in (b"a\x00b", b"x" * 9000 + b"\xff", "café".encode("latin-1")):
        path = subject.put("data", data)

        assert "error" in subject.backend.edit_file(path, "a", "b")
        assert content(subject, path) == data


def test_an_edit_cannot_make_a_file_too_large(subject: Subject) -> None:
    path = subject.put("a.txt", "x" * 100)
    subject.limit(edit=1000)

    error = subject.backend.edit_file(path, "x", "y" * 500, replace_all=True)["error"]

    assert "larger than 1000" in error
    subject.limit(edit=50)
    assert "takes 50" in subject.backend.edit_file(path, "x", "y")["error"]


def test_a_write_that_expects_another_content_is_refused(subject: Subject) -> None:
    path = subject.put("a.txt", "one")
    seen = subject.backend.content_hash(path)
    assert seen == sha256(b"one")
    subject.put("a.txt", "two")

    for result in (
        subject.backend.write_file(path, "mine", expected_hash=seen),
        subject.backend.edit_file(path, "two", "mine", expected_hash=seen),
    ):
        assert "changed since you read it" in result["error"]
    assert content(subject, path) == b"two"


def test_a_write_that_expects_the_present_content_is_made(subject: Subject) -> None:
    path = subject.put("a.txt", "one")

    assert "error" not in subject.backend.write_file(path, "two", expected_hash=sha256(b"one"))
    assert "error" not in subject.backend.edit_file(
        path, "two", "three", expected_hash=sha256(b"two")
    )
    assert content(subject, path) == b"three"


def test_a_write_that_expects_a_file_that_is_gone_is_refused(subject: Subject) -> None:
    result = subject.backend.write_file(subject.at("a"), "x", expected_hash=sha256(b"one"))

    assert "deleted since you read it" in result["error"]
    assert subject.backend.stat(subject.at("a")) is None


def test_write_bytes_compares_the_version(subject: Subject) -> None:
    path = subject.put("a.txt", "one")
    found = subject.backend.stat(path)
    assert found is not None
    subject.put("a.txt", "other")

    with pytest.raises(FileChanged):
        subject.backend.write_bytes(path, b"mine", if_version=found.version)
    with pytest.raises(FileChanged):
        subject.backend.write_bytes(subject.at("gone"), b"mine", if_version=found.version)
    assert content(subject, path) == b"other"


def test_parallel_edits_lose_nothing(subject: Subject) -> None:
    path = subject.put("a.txt", "".join(f"<{number}>\n" for number in range(40)))

    def edit(number: int) -> dict[str, object]:
        return subject.backend.edit_file(path, f"<{number}>", f"[{number}]")

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(edit, range(40)))

    assert [result.get("error") for result in results] == [None] * 40
    assert content(subject, path) == "".join(f"[{number}]\n" for number in range(40)).encode()
