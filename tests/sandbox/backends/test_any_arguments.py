"""Any arguments of a model give a result or an error that databases and clients accept."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sandbox.backends.subjects import SUBJECTS, Subject

text = st.text(st.characters(), max_size=20)  # includes lone surrogates and NUL
path = st.one_of(
    text, st.sampled_from(["", "/", "a", "dir/b", "dir", "..", "a/x", "dir/\ud800", "/skills"])
)
pattern = st.one_of(text, st.sampled_from(["**", "*", "{", "[", "(", "a|b", "^", "\\", "dir/*"]))
number = st.integers(-3, 10**12)

calls = st.one_of(
    st.tuples(st.just("ls"), st.tuples(path)),
    st.tuples(st.just("read_file"), st.tuples(path, number, number)),
    st.tuples(st.just("write_file"), st.tuples(path, text)),
    st.tuples(st.just("edit_file"), st.tuples(path, text, text, st.booleans())),
    st.tuples(st.just("glob"), st.tuples(pattern, st.none() | path)),
    st.tuples(st.just("grep"), st.tuples(pattern, path, st.none() | pattern, st.booleans())),
)


def strings(value: object) -> Iterator[str]:
    """Yield every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in (*value, *value.values()):
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)


@pytest.mark.parametrize("name", sorted(SUBJECTS))
@settings(max_examples=30, deadline=None)
@given(made=st.lists(calls, max_size=12))
def test_any_call_returns_clean_json(name: str, made: list[tuple[str, tuple[object, ...]]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory) / "files"
        home.mkdir()
        subject: Subject = SUBJECTS[name](home)
        subject.put("a", "one\ntwo\n")
        subject.put("dir/b", "three\n")
        for tool, arguments in made:
            result = getattr(subject.backend, tool)(*arguments)

            sent = json.dumps(result, ensure_ascii=False).encode()
            assert json.loads(sent) == result
            assert "\0" not in "".join(strings(result))
        assert [entry.name for entry in Path(directory).iterdir()] == ["files"]
