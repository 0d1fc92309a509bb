"""The text of tools' results and inputs on the terminal."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.doors.cli.wording import result_text, short_input


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"stdout": "a\n", "stderr": "b\n", "exit_code": 1}, "a\nb\nexit code 1"),
        ({"stdout": "", "stderr": "", "exit_code": 0}, "(no output)"),
        ({"path": "/x", "content": "     1 | a", "total_lines": 1}, "     1 | a"),
        ({"path": "/", "entries": []}, "(an empty directory)"),
        ({"entries": [{"name": "a"}, {"name": "b", "type": "directory"}]}, "a  b/"),
        ({"matches": ["/a.py", "/b.py"], "count": 2}, "/a.py\n/b.py"),
        ({"matches": [{"file": "/a", "line": 3, "content": "x"}]}, "/a:3: x"),
        ({"matches": []}, "(nothing found)"),
        ({"status": "ok", "path": "/a", "size_bytes": 4}, "ok, size bytes: 4"),
        ({"entries": "no list of entries"}, '{"entries": "no list of entries"}'),
    ],
)
def test_a_result_is_shown_as_readable_text(result: object, text: str) -> None:
    assert result_text(json.dumps(result)) == text


def test_text_that_is_not_json_stays_and_a_cut_result_is_marked() -> None:
    assert result_text("plain") == "plain"
    assert result_text('{"path": "/x", "content": "abc') == "(a long result)"


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
_keys = st.sampled_from(["exit_code", "content", "entries", "matches", "status", "name"])


@given(st.dictionaries(_keys, _values))
def test_no_result_of_any_tool_breaks_the_terminal(result: dict[str, object]) -> None:
    assert isinstance(result_text(json.dumps(result)), str)
    short = short_input(result)
    assert "\n" not in short
    assert len(short) <= 160


def test_an_input_is_its_first_value_and_the_names_of_the_others() -> None:
    assert short_input({"path": "/a.csv", "limit": 6}) == "/a.csv limit=6"
    assert short_input({}) == ""
