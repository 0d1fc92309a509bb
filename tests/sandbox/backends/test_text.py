"""Compare patterns, windows and edits with simple definitions."""

from __future__ import annotations

import itertools
from contextlib import suppress
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.backends.editing import replace_text
from sandbox.backends.limits import FileLimits
from sandbox.backends.patterns import GlobPattern
from sandbox.backends.window import read_window
from sandbox.errors import FileError, InvalidRequest, NotText

MANY = FileLimits(read_output=10**6, line=10**6)


def naive_match(pattern: list[str], path: list[str]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        if len(pattern) == 1:
            return bool(path)
        return any(naive_match(pattern[1:], path[at:]) for at in range(len(path) + 1))
    return bool(path) and naive_name(pattern[0], path[0]) and naive_match(pattern[1:], path[1:])


def naive_name(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(naive_name(pattern[1:], name[at:]) for at in range(len(name) + 1))
    return bool(name) and pattern[0] in ("?", name[0]) and naive_name(pattern[1:], name[1:])


@given(
    st.lists(st.sampled_from(["**", "*", "?", "a", "b", "a*", "*b", "*a?", ".+a"]), min_size=1),
    st.lists(st.sampled_from(["a", "b", "ab", "aab", "\n", "é", ".+a"]), min_size=1, max_size=5),
)
def test_a_glob_matches_according_to_its_definition(pattern: list[str], path: list[str]) -> None:
    glob = GlobPattern("/".join(pattern), split_prefix=False)

    assert glob.matches("/".join(path)) == naive_match(pattern, path)
    if glob.depth is not None:
        assert not glob.matches("/".join(path)) or len(path) <= glob.depth


@pytest.mark.parametrize("text", ["a/b", "a5b", "a.b", "a+b"])
def test_a_range_matches_every_character_in_it_except_a_slash(text: str) -> None:
    assert GlobPattern("a[+-9]b").matches(text) == (text != "a/b")


@given(st.text(max_size=30))
def test_any_text_is_a_glob_or_refused(pattern: str) -> None:
    with suppress(InvalidRequest):
        GlobPattern(pattern).matches("a/b")


@pytest.mark.parametrize(
    ("pattern", "prefix"),
    [("*.py", ""), ("src/*.py", "src"), ("a/b/c.py", "a/b"), ("/x/**/y", "x"), ("{a,b}/c/d", "")],
)
def test_the_prefix_is_the_part_without_wildcards(pattern: str, prefix: str) -> None:
    assert GlobPattern(pattern).prefix == prefix


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"), max_size=12)),
    st.booleans(),
    st.integers(0, 20),
    st.integers(1, 10),
)
def test_a_window_is_a_slice_of_the_lines(
    lines: list[str], terminated: bool, offset: int, limit: int
) -> None:
    if lines and not terminated and not lines[-1]:
        lines = lines[:-1]  # an empty last line without a line break does not count
        terminated = True
    data = ("\n".join(lines) + ("\n" if lines and terminated else "")).encode()
    try:
        window = read_window(BytesIO(data), len(data), offset, limit, MANY)
    except InvalidRequest:
        assert offset >= max(1, len(lines))
        return

    expected = list(enumerate(lines, 1))[offset : offset + limit]
    assert window.lines == [f"{number:6d} | {line}" for number, line in expected]
    assert window.total_lines == len(lines)
    assert window.has_more == (offset + limit < len(lines))


@given(st.binary(max_size=200), st.integers(0, 5), st.integers(1, 60))
def test_any_bytes_are_a_window_or_refused(data: bytes, offset: int, scan: int) -> None:
    limits = FileLimits(read_output=30, line=3, scan=scan)
    try:
        window = read_window(BytesIO(data), len(data), offset, 3, limits)
    except (NotText, FileError):
        return
    assert "\0" not in "".join(window.lines)
    assert window.total_lines is None or window.total_lines >= len(window.lines)


@given(st.text("ab\n", max_size=20), st.text("ab\n", min_size=1, max_size=3), st.text("abc\n"))
def test_an_edit_replaces_the_only_match_or_nothing(text: str, old: str, new: str) -> None:
    places = [at for at in range(len(text)) if text.startswith(old, at)]
    try:
        edit = replace_text(text, old, new, replace_all=False, max_length=1000)
    except InvalidRequest:
        assert len(places) != 1 or old == new
        return
    assert places == [text.find(old)]
    assert edit.text == text[: places[0]] + new + text[places[0] + len(old) :]


@given(st.lists(st.text("abc", max_size=4), min_size=2, max_size=6))
def test_a_crlf_file_keeps_its_line_breaks_after_any_edit(lines: list[str]) -> None:
    text = "\r\n".join(["start", *lines, "end"]) + "\r\n"
    for old_break, new_break in itertools.product(("\n", "\r\n"), repeat=2):
        old = old_break.join(["start", *lines])
        edit = replace_text(text, old, f"one{new_break}two", replace_all=False, max_length=1000)
        assert edit.text == "one\r\ntwo\r\nend\r\n"


class CountingStream(BytesIO):
    """A stream that counts the lines that are read one by one."""

    lines = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        self.lines += 1
        return super().readline(size)


@pytest.mark.parametrize("data", [b"\n" * 1_000_000, b"a\n" * 500_000, b"a\n" * 500_000 + b"b"])
def test_lines_before_the_offset_are_not_read_one_by_one(data: bytes) -> None:
    stream = CountingStream(data)
    number = data.count(b"\n") - 2
    window = read_window(stream, len(data), number, 2, FileLimits(scan=2_000_000))
    assert window.lines[0].startswith(f"{number + 1:6d} | ")
    assert stream.lines < 10
