"""The JSON value in a reply."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.events.append import dump
from agents.structured_output.reply import MAX_BYTES, NoValue, value_in

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00`")),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(["a", "b", ""]), inner)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(values)
def test_plain_or_in_one_fence_it_is_the_same_value(value: Any) -> None:
    text = dump(value)
    assert value_in(text) == value
    assert value_in(f"\n {json.dumps(value, indent=2)}\n") == value
    assert value_in(f"Here it is:\n\n```json\n{text}\n```\nThat is all.") == value
    assert value_in(f"  ```\r\n{text}\r\n  ```") == value


@given(st.text(max_size=200))
def test_any_text_has_a_value_or_a_reason(text: str) -> None:
    try:
        value = value_in(text)
    except NoValue as problem:
        told = str(problem)
    else:
        told = dump(value)
    assert 0 < len(told) < 200 + len(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("Three.", "not JSON: Expecting value at line 1, column 1"),
        ('{"a": 1} and more', "not JSON: Extra data"),
        ("{'a': 1}", "not JSON"),
        ('```json\n{"a": 1\n```', "not JSON"),
        ("```json\n1", "several fenced blocks"),
        ("```\n1\n```\n```\n2\n```", "several fenced blocks"),
        ("```json\n1\n```json", "several fenced blocks"),
        ("NaN", "NaN, which is not JSON"),
        ("[-Infinity]", "-Infinity"),
        ("1e999", "too large"),
        ("9" * 5000, "too many digits"),
        ('{"a": 1, "a": 2}', "a duplicate name"),
        ('"\\ud800"', "half of a character"),
        ('{"\\u0000": 1}', "NUL"),
        ("[" * 66 + "]" * 66, "deeper than 64"),
        ("[" * 100_000, "deeper than 64"),
        ('"' + "x" * MAX_BYTES + '"', "may have 262,144"),
    ],
)
def test_an_invalid_value_is_explained(text: str, told: str) -> None:
    with pytest.raises(NoValue, match=told) as problem:
        value_in(text)
    assert len(str(problem.value)) < 200


@pytest.mark.parametrize("part", ["```\n", "` ", "\n ```", "{", '"', " "])
def test_the_work_grows_with_the_text_only(part: str) -> None:
    text = "x" + part * ((MAX_BYTES - 10) // len(part))
    started = time.thread_time()
    with pytest.raises(NoValue):
        value_in(text)
    assert time.thread_time() - started < 1
