"""Tests for your own backend (docs/guides/python.md#backends). pytest collects a subclass:

from vel.testing.backends import BackendTests


class TestMyBackend(BackendTests):
    def backend(self):
        return MyBackend()
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from traceback import extract_tb
from typing import Any

from sandbox.backends.adapted import missing_methods
from sandbox.backends.plain import NotPlain, plain_result

_MOST = 1_000_000


class BackendTests:
    """Base class of tests that check whether your backend behaves as agents expect.

    Subclass it and define `backend`; each test gets a new backend. The tests call the methods as
    Vel calls them. They test optional parameters and methods only if your backend has them.
    """

    root: str = ""
    """The directory for the files of the tests, such as "/data"; empty for the root."""

    def backend(self) -> Any:
        """Return the backend to test. Its directory `root` must be empty or missing."""
        raise NotImplementedError("Return your backend.")

    # The six tools ------------------------------------------------------------------------------

    def test_it_has_the_six_tools(self) -> None:
        missing = missing_methods(self.backend())
        assert not missing, f"It lacks {', '.join(missing)}."

    def test_a_file_is_read_as_it_was_written(self) -> None:
        backend, path = self.backend(), self.at("reports/q4.md")
        written = self.done(backend.write_file(path, "# Q4\n\nSales grew."))
        assert written.get("path") == path, "write_file returns the path."
        read = self.done(backend.read_file(path, 0, 100))
        assert lines_of(read) == ["# Q4", "", "Sales grew."]
        assert read.get("total_lines") == 3
        assert read.get("has_more") is False

    def test_lines_are_numbered_from_1(self) -> None:
        backend, path = self.backend(), self.at("a.txt")
        backend.write_file(path, "one\ntwo")
        content = self.done(backend.read_file(path, 0, 100))["content"]
        assert content == "     1 | one\n     2 | two", content

    def test_a_file_is_replaced_whole(self) -> None:
        backend, path = self.backend(), self.at("a.txt")
        backend.write_file(path, "a long text\nof two lines")
        self.done(backend.write_file(path, "short"))
        assert lines_of(self.done(backend.read_file(path, 0, 100))) == ["short"]

    def test_a_long_file_comes_in_pages(self) -> None:
        backend, path = self.backend(), self.at("long.txt")
        backend.write_file(path, "\n".join(f"line {number}" for number in range(25)))
        first = self.done(backend.read_file(path, 0, 10))
        assert lines_of(first) == [f"line {number}" for number in range(10)]
        assert first.get("has_more") is True
        last = self.done(backend.read_file(path, 20, 10))
        assert lines_of(last) == [f"line {number}" for number in range(20, 25)]
        assert last.get("has_more") is False
        assert last["content"].startswith("    21 | "), "Numbers are those of the whole file."

    def test_an_empty_file_exists(self) -> None:
        backend, path = self.backend(), self.at("empty.txt")
        self.done(backend.write_file(path, ""))
        assert lines_of(self.done(backend.read_file(path, 0, 100))) in ([], [""])
        assert "empty.txt" in self.names(backend, self.root or "/")

    def test_any_text_and_any_name_are_kept(self) -> None:
        backend, path = self.backend(), self.at('über uns/it\'s "$HOME" $(id) 報告.md')
        text = "'quotes' \"and\" $(id) `id` \\n %s {x}\nEOF\n\ttab, 報告, 😀"
        self.done(backend.write_file(path, text))
        assert lines_of(self.done(backend.read_file(path, 0, 100))) == text.split("\n")

    def test_a_missing_file_is_an_error_result(self) -> None:
        backend, path = self.backend(), self.at("missing.txt")
        self.refused(backend.read_file(path, 0, 100))
        self.refused(backend.edit_file(path, "a", "b"))

    def test_a_directory_is_no_file(self) -> None:
        backend = self.backend()
        backend.write_file(self.at("docs/a.md"), "a")
        self.refused(backend.read_file(self.at("docs"), 0, 100))

    def test_an_edit_replaces_a_text_that_appears_once(self) -> None:
        backend, path = self.backend(), self.at("a.txt")
        backend.write_file(path, "one\ntwo\nthree")
        self.done(backend.edit_file(path, "two\n", "2\n"))
        assert lines_of(self.done(backend.read_file(path, 0, 100))) == ["one", "2", "three"]

    def test_an_edit_that_is_not_clear_changes_nothing(self) -> None:
        backend, path = self.backend(), self.at("a.txt")
        backend.write_file(path, "same\nsame")
        self.refused(backend.edit_file(path, "same", "other"))
        self.refused(backend.edit_file(path, "missing", "other"))
        assert lines_of(self.done(backend.read_file(path, 0, 100))) == ["same", "same"]

    def test_a_directory_lists_its_files_and_directories(self) -> None:
        backend = self.backend()
        backend.write_file(self.at("top.md"), "a")
        backend.write_file(self.at("docs/a.md"), "b")
        backend.write_file(self.at("docs/deep/b.md"), "c")
        result = self.done(backend.ls(self.root or "/"))
        found = {entry["name"].rstrip("/"): entry["type"] for entry in result["entries"]}
        assert found.get("top.md") == "file", found
        assert found.get("docs") == "directory", found
        assert self.names(backend, self.at("docs")) == {"a.md", "deep"}

    def test_glob_finds_files_at_any_depth_by_absolute_paths(self) -> None:
        backend = self.backend()
        for name in ("a.md", "docs/b.md", "docs/deep/c.md", "docs/d.txt"):
            backend.write_file(self.at(name), "x")
        pattern = f"{self.root}/**/*.md" if self.root else "**/*.md"
        matches = self.done(backend.glob(pattern))["matches"]
        expected = {self.at("docs/b.md"), self.at("docs/deep/c.md")}
        assert expected <= set(matches) <= expected | {self.at("a.md")}, matches

    def test_grep_finds_lines_by_a_regular_expression(self) -> None:
        backend = self.backend()
        backend.write_file(self.at("docs/a.md"), "first\nTotal: 42\nlast")
        backend.write_file(self.at("docs/b.txt"), "Total: 7")
        backend.write_file(self.at("c.md"), "Total: 9")
        found = self.done(backend.grep(r"Total: \d+", self.at("docs"), None))["matches"]
        told = {(match["file"], match["line"], match["content"]) for match in found}
        assert told == {
            (self.at("docs/a.md"), 2, "Total: 42"),
            (self.at("docs/b.txt"), 1, "Total: 7"),
        }
        only = self.done(backend.grep("Total", self.at("docs"), "*.md"))["matches"]
        assert [match["file"] for match in only] == [self.at("docs/a.md")]
        assert self.done(backend.grep("nothing like it", self.at("docs"), None))["matches"] == []

    def test_a_wrong_regular_expression_is_an_error_result(self) -> None:
        backend = self.backend()
        backend.write_file(self.at("a.txt"), "a")
        self.refused(backend.grep("(", self.root or "/", None))

    def test_parallel_writes_do_not_mix(self) -> None:
        backend = self.backend()
        with ThreadPoolExecutor(4) as threads:
            list(
                threads.map(
                    lambda number: backend.write_file(self.at(f"n{number}"), f"text {number}"),
                    range(16),
                )
            )
        for number in range(16):
            read = self.done(backend.read_file(self.at(f"n{number}"), 0, 100))
            assert lines_of(read) == [f"text {number}"]

    # Optional methods and parameters -------------------------------------------------------------

    def test_replace_all_replaces_each(self) -> None:
        backend, path = self.backend(), self.at("a.txt")
        if not accepts(backend.edit_file, "replace_all"):
            return
        backend.write_file(path, "same\nsame")
        self.done(backend.edit_file(path, "same", "other", replace_all=True))
        assert lines_of(self.done(backend.read_file(path, 0, 100))) == ["other", "other"]

    def test_a_search_starts_in_a_directory(self) -> None:
        backend = self.backend()
        if not accepts(backend.glob, "path"):
            return
        backend.write_file(self.at("docs/a.md"), "x")
        backend.write_file(self.at("other/b.md"), "x")
        found = self.done(backend.glob("*.md", path=self.at("docs")))["matches"]
        assert found == [self.at("docs/a.md")]

    def test_a_search_ignores_case(self) -> None:
        backend = self.backend()
        if not accepts(backend.grep, "ignore_case"):
            return
        backend.write_file(self.at("docs/a.md"), "Total")
        found = self.done(backend.grep("TOTAL", self.at("docs"), None, ignore_case=True))
        assert len(found["matches"]) == 1

    def test_a_long_line_is_read_on(self) -> None:
        backend, path = self.backend(), self.at("a.txt")
        if not accepts(backend.read_file, "line_offset"):
            return
        backend.write_file(path, "0123456789\nnext")
        read = self.done(backend.read_file(path, 0, 1, line_offset=8))
        assert lines_of(read) == ["89"]

    def test_bytes_are_kept(self) -> None:
        backend, path = self.backend(), self.at("picture.png")
        if not (hasattr(backend, "write_bytes") and hasattr(backend, "read_bytes")):
            return
        data = bytes(range(256))
        backend.write_bytes(path, data)
        assert backend.read_bytes(path, 1_000) == data
        assert "picture.png" in self.names(backend, self.root or "/")

    def test_commands_return_their_output_and_exit_code(self) -> None:
        backend = self.backend()
        if not getattr(backend, "supports_execute", hasattr(backend, "execute")):
            return
        result = self.done(backend.execute("echo out; exit 3", 30))
        assert result["stdout"].strip() == "out"
        assert result["exit_code"] == 3

    # Helpers -------------------------------------------------------------------------------------

    def at(self, name: str) -> str:
        return f"{self.root}/{name}"

    def names(self, backend: Any, path: str) -> set[str]:
        return {entry["name"].rstrip("/") for entry in self.done(backend.ls(path))["entries"]}

    def done(self, result: Any) -> dict[str, Any]:
        """Return `result`, after checking that it is not an error and has only JSON values."""
        found = plain(result)
        assert "error" not in found, f"The call failed: {found['error']}"
        return found

    def refused(self, result: Any) -> None:
        found = plain(result)
        assert found.get("error"), f"Expected {{'error': TEXT}}, got {found}"
        assert isinstance(found["error"], str), "The error must be a string."


def plain(result: Any) -> dict[str, Any]:
    """Return `result` as an agent receives it, after checking that it has only JSON values."""
    try:
        found = plain_result(result, _MOST)
    except NotPlain as problem:
        raise AssertionError(f"The method returned {problem}.") from None
    json.dumps(found)
    return found


def lines_of(result: dict[str, Any]) -> list[str]:
    """Return the lines in a result of `read_file`, without their line numbers."""
    content = result["content"]
    return [line.partition(" | ")[2] for line in content.split("\n")] if content else []


def accepts(method: Any, parameter: str) -> bool:
    return parameter in signature(method).parameters


def problems_of(tests: BackendTests) -> dict[str, str]:
    """Run the tests without pytest, and return the names and errors of the failed ones."""
    found = {}
    for name in dir(tests):
        if name.startswith("test_"):
            try:
                getattr(tests, name)()
            except Exception as error:  # noqa: BLE001  # any failure of a backend
                said = str(error) or extract_tb(error.__traceback__)[-1].line
                found[name] = f"{type(error).__name__}: {said}"
    return found
