"""Every tool of every backend refuses a value of a wrong type with the name of the argument."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.errors import SetupError
from tests.sandbox.backends.subjects import Subject

CALLS = [
    ("ls", {"path": None}, "path must be a text, got None"),
    ("read_file", {"path": "a", "offset": "0"}, "offset must be a whole number, got '0'"),
    ("read_file", {"path": "a", "limit": None}, "limit must be a whole number, got None"),
    ("read_file", {"path": "a", "line_offset": True}, "line_offset must be a whole number"),
    ("write_file", {"path": "a", "content": b"x"}, "content must be a text, got b'x'"),
    ("write_file", {"path": "a", "content": "x", "expected_hash": 5}, "expected_hash must be"),
    ("edit_file", {"path": "a", "old_text": 1, "new_text": "b"}, "old_text must be a text"),
    ("edit_file", {"path": "a", "old_text": "b", "new_text": None}, "new_text must be a text"),
    (
        "edit_file",
        {"path": "a", "old_text": "b", "new_text": "c", "replace_all": "no"},
        "replace_all must be True or False, got 'no'",
    ),
    ("glob", {"pattern": None}, "pattern must be a text, got None"),
    ("glob", {"pattern": "*", "path": 5}, "path must be a text or None, got 5"),
    ("grep", {"pattern": None}, "pattern must be a text, got None"),
    ("grep", {"pattern": "a", "include": ["*"]}, "include must be a text or None"),
    ("grep", {"pattern": "a", "ignore_case": 1}, "ignore_case must be True or False, got 1"),
]


@pytest.mark.parametrize(("tool", "arguments", "message"), CALLS)
def test_a_wrong_type_is_refused_with_the_name_of_the_argument(
    subject: Subject, tool: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(SetupError) as refused:
        getattr(subject.backend, tool)(**arguments)
    assert message in str(refused.value)


def test_a_wrong_type_is_refused_at_its_position(subject: Subject) -> None:
    subject.put("a", "old")
    with pytest.raises(SetupError, match="content must be a text, got b'x'"):
        subject.backend.write_file(subject.at("a"), b"x")  # type: ignore[arg-type]
    assert subject.backend.read_bytes(subject.at("a"), 10) == b"old"
