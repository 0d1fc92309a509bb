"""ls, read_file and the byte-level reads: the same for every backend."""

from __future__ import annotations

import hashlib
import re

import pytest

from sandbox.backends.names import shown
from sandbox.errors import FileMissing, FileTooLarge, IsDirectory, NotDirectory
from tests.sandbox.backends.subjects import Subject


def test_ls_lists_directories_first_and_each_by_name(subject: Subject) -> None:
    subject.put("b.txt", "four")
    subject.put("a.txt", "")
    subject.put("z/inner.txt", "x")

    result = subject.backend.ls(subject.home)

    ours = [entry for entry in result["entries"] if entry["name"] != "memory"]
    assert ours == [
        {"name": "z", "type": "directory", "path": subject.at("z")},
        {"name": "a.txt", "type": "file", "path": subject.at("a.txt"), "size": 0},
        {"name": "b.txt", "type": "file", "path": subject.at("b.txt"), "size": 4},
    ]
    assert result["path"] == subject.home
    assert result["truncated"] is False


def test_ls_of_a_missing_path_or_a_file_is_an_error(subject: Subject) -> None:
    path = subject.put("a.txt", "x")

    assert "no such" in subject.backend.ls(subject.at("nowhere"))["error"]
    assert "error" in subject.backend.ls(path)


def test_ls_shows_a_bounded_number_of_entries(subject: Subject) -> None:
    for number in range(6):
        subject.put(f"dir/{number}", "")
    subject.limit(listing=4)

    result = subject.backend.ls(subject.at("dir"))

    assert [entry["name"] for entry in result["entries"]] == ["0", "1", "2", "3"]
    assert result["truncated"] is True
    assert "with glob" in result["note"]


def test_read_file_numbers_lines(subject: Subject) -> None:
    path = subject.put("a.txt", "first\nsecond\n")

    assert subject.backend.read_file(path) == {
        "path": path,
        "content": "     1 | first\n     2 | second",
        "lines_returned": 2,
        "total_lines": 2,
        "offset": 0,
        "has_more": False,
    }


def test_read_file_pages_through_a_file(subject: Subject) -> None:
    path = subject.put("a.txt", "\n".join(f"line {number}" for number in range(1, 251)))

    first = subject.backend.read_file(path)
    last = subject.backend.read_file(path, offset=200)

    assert (first["lines_returned"], first["has_more"], first["total_lines"]) == (100, True, 250)
    assert first["content"].endswith("   100 | line 100")
    assert (last["lines_returned"], last["has_more"], last["total_lines"]) == (50, False, 250)
    assert last["content"].startswith("   201 | line 201")
    exact = subject.backend.read_file(path, offset=150, limit=100)
    assert (exact["lines_returned"], exact["has_more"]) == (100, False)


def test_an_empty_file_has_no_lines(subject: Subject) -> None:
    result = subject.backend.read_file(subject.put("empty", ""))

    assert (result["content"], result["total_lines"], result["has_more"]) == ("", 0, False)


def test_an_offset_beyond_the_end_is_an_error_with_the_length_of_the_file(
    subject: Subject,
) -> None:
    path = subject.put("a.txt", "one\ntwo\n")

    for offset in (2, 3, 1000):
        assert "2 lines" in subject.backend.read_file(path, offset=offset)["error"]


@pytest.mark.parametrize(("offset", "limit"), [(-1, 10), (0, 0), (0, -5)])
def test_an_invalid_window_is_refused(subject: Subject, offset: int, limit: int) -> None:
    assert "error" in subject.backend.read_file(subject.put("a", "x"), offset, limit)


def test_carriage_returns_at_line_ends_are_not_shown(subject: Subject) -> None:
    path = subject.put("a.txt", "one\r\ntwo\r\n")

    assert subject.backend.read_file(path)["content"] == "     1 | one\n     2 | two"


def test_a_read_is_cut_at_a_line_and_names_the_next_offset(subject: Subject) -> None:
    path = subject.put("a.txt", "".join(f"{'é' * 50} {number}\n" for number in range(100)))
    subject.limit(read_output=1000)

    result = subject.backend.read_file(path)

    assert len(result["content"].encode()) <= 1000
    assert result["has_more"] is True
    assert result["total_lines"] == 100
    assert f"offset={result['lines_returned']}" in result["note"]
    following = subject.backend.read_file(path, offset=result["lines_returned"])
    assert f"| {'é' * 50} {result['lines_returned']}\n" in following["content"]


def test_a_long_line_is_cut_with_a_note(subject: Subject) -> None:
    path = subject.put("a.txt", "é" * 3000 + "\nnext\n")

    first, second = subject.backend.read_file(path)["content"].split("\n")

    assert first.startswith("     1 | " + "é" * 2000 + "…")
    assert "6001 bytes" in first
    assert second == "     2 | next"


def test_a_long_line_is_read_to_its_end_as_the_notes_say(subject: Subject) -> None:
    line = "".join(f"é{number};" for number in range(2_000))
    path = subject.put("a.txt", f"first\n{line}\nlast\n")
    subject.limit(read_output=5_000)
    found, page = "", subject.backend.read_file(path, offset=1, limit=1)
    for _ in range(10):
        numbered, _, cut = page["content"].partition("…")
        found += numbered.removeprefix("     2 | ")
        if not cut:
            break
        assert page["has_more"] is True
        place = re.search(r"offset=1, line_offset=(\d+)", page["note"])
        assert place is not None
        at = int(place[1])
        page = subject.backend.read_file(path, offset=1, limit=1, line_offset=at)
        assert len(page["content"].encode()) < 5_100
    assert found == line
    assert page["has_more"] is True, "the last line follows"
    alone = subject.put("b.txt", "x" * 2_001)
    assert subject.backend.read_file(alone)["has_more"] is True
    assert subject.backend.read_file(alone, line_offset=2_000)["has_more"] is False
    beyond = subject.backend.read_file(path, 1, 1, len(line))
    assert beyond["error"].endswith(f"line_offset {len(line)} is beyond the end of line 2.")


def test_only_the_first_line_starts_at_the_offset_in_it(subject: Subject) -> None:
    path = subject.put("a.txt", "one line\r\nnext\r\n")
    page = subject.backend.read_file(path, line_offset=4)
    assert page["content"] == "     1 | line\n     2 | next"
    assert (page["line_offset"], page["has_more"]) == (4, False)


def test_a_file_longer_than_the_scan_has_no_total(subject: Subject) -> None:
    path = subject.put("a.txt", "0123456789\n" * 100)
    subject.limit(scan=550)

    near = subject.backend.read_file(path, limit=5)
    far = subject.backend.read_file(path, offset=80)
    past = subject.backend.read_file(path, offset=45, limit=10)

    assert (near["total_lines"], near["has_more"]) == (None, True)
    with subject.backend.open_file(path) as opened:
        advice = "sed" if opened.commands else "Read only the lines before"
    assert advice in far["error"]
    assert (past["lines_returned"], past["has_more"]) == (5, True)
    assert "550 bytes" in past["note"]


def test_a_binary_file_is_refused_with_its_size(subject: Subject) -> None:
    path = subject.put("a.png", b"\x89PNG\x00\x01\x02")

    error = subject.backend.read_file(path)["error"]

    assert "binary file of 7 bytes" in error
    assert path in error


def test_a_file_in_another_encoding_is_refused_with_advice(
    subject: Subject,
) -> None:
    path = subject.put("latin1.txt", "café".encode("latin-1"))

    with subject.backend.open_file(path) as opened:
        commands = opened.commands
    advice = "iconv" if commands else "replace it with write_file"
    assert advice in subject.backend.read_file(path)["error"]


def test_invalid_bytes_deep_in_a_file_are_replaced(subject: Subject) -> None:
    path = subject.put("log.txt", b"ok\n" * 5000 + b"\xff\x00 here\n")

    last = subject.backend.read_file(path, offset=5000)

    assert last["content"] == "  5001 | \ufffd\ufffd here"


def test_a_character_across_the_sample_boundary_is_still_text(subject: Subject) -> None:
    path = subject.put("a.txt", "x" * 8191 + "é")

    assert "error" not in subject.backend.read_file(path)


def test_reading_a_directory_or_a_missing_file_is_an_error(subject: Subject) -> None:
    subject.put("dir/a.txt", "x")

    assert "ls" in subject.backend.read_file(subject.at("dir"))["error"]
    assert "no such file" in subject.backend.read_file(subject.at("nowhere"))["error"]
    assert "error" in subject.backend.read_file(subject.at("dir/a.txt/below"))


def test_read_bytes_returns_all_or_refuses(subject: Subject) -> None:
    path = subject.put("data", b"\x00\x01\x02")

    assert subject.backend.read_bytes(path, 3) == b"\x00\x01\x02"
    with pytest.raises(FileTooLarge):
        subject.backend.read_bytes(path, 2)
    with pytest.raises(FileMissing):
        subject.backend.read_bytes(subject.at("nowhere"), 10)
    with pytest.raises(IsDirectory):
        subject.backend.read_bytes(subject.home, 10)
    with pytest.raises((NotDirectory, FileMissing)):
        subject.backend.read_bytes(path + "/below", 10)


def test_stat_distinguishes_files_directories_and_missing_paths(subject: Subject) -> None:
    path = subject.put("dir/a.txt", "four")
    found = subject.backend.stat(path)
    directory = subject.backend.stat(subject.at("dir"))

    assert found is not None
    assert (found.type, found.size) == ("file", 4)
    assert directory is not None
    assert directory.type == "directory"
    assert subject.backend.stat(subject.at("nowhere")) is None
    assert subject.backend.stat(path + "/below") is None


def test_the_version_changes_with_the_content(subject: Subject) -> None:
    path = subject.put("a.txt", "one")
    before = subject.backend.stat(path)
    subject.put("a.txt", "two")
    after = subject.backend.stat(path)

    assert before is not None
    assert after is not None
    assert before.version != after.version


def test_content_hash_is_the_sha256_of_the_bytes(subject: Subject) -> None:
    path = subject.put("a.txt", "one")

    assert subject.backend.content_hash(path) == hashlib.sha256(b"one").hexdigest()
    subject.limit(scan=2)
    with pytest.raises(FileTooLarge):
        subject.backend.content_hash(path)


@pytest.mark.parametrize("name", ["two\nlines", "tab\there", "esc\x1b[2J", "\u202eoverride", 'q"q'])
def test_names_with_line_breaks_and_control_characters_are_shown_everywhere(
    subject: Subject, name: str
) -> None:
    subject.put(f"odd/{name}", "needle")
    path = subject.at(f"odd/{shown(name)}")

    listed = subject.backend.ls(subject.at("odd"))["entries"]
    assert [(entry["name"], entry["path"]) for entry in listed] == [(shown(name), path)]
    assert subject.backend.read_file(path)["content"] == "     1 | needle"
    assert subject.backend.glob("odd/*", subject.home)["matches"] == [path]
    assert subject.backend.grep("needle", subject.at("odd"))["matches"][0]["file"] == path


@pytest.mark.parametrize(
    "path",
    ["../../../../../etc/passwd", "/../etc/passwd", "a/../../../../../x", "nul\0", "~/x", "\ud800"],
)
def test_paths_that_lead_out_are_refused_by_every_tool(subject: Subject, path: str) -> None:
    backend = subject.backend

    for result in (
        backend.ls(path),
        backend.read_file(path),
        backend.write_file(path, "x"),
        backend.edit_file(path, "a", "b"),
        backend.glob("*", path),
        backend.grep("x", path),
    ):
        assert list(result) == ["error"]
