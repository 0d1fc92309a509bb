"""The review of a call shows every input, as the tool receives it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.hidden_text import visible
from agents.middleware.execution import ExecuteInput, ExecuteInSandboxInput, ExecutePythonInput
from agents.middleware.filesystem import EditFileInput, WriteFileInput
from agents.review import Review, Unreadable, as_json, as_text, call_review
from agents.review.call import NEW_TEXT, OLD_TEXT, PATH
from agents.review.parts import CommandSection, DiffSection, FieldsSection, SqlSection
from sandbox.backends import StateFilesystemBackend

TOOLS = ["execute", "execute_python", "execute_in_sandbox", "execute_sql", "write_file"]
TOOLS += ["edit_file", "send_slack_message"]
NAMES = ["path", "file_path", "content", "old_text", "old_string", "new_text", "replace_all"]
NAMES += ["command", "code", "timeout", "timeout_seconds", "cwd", "query", "connection", "x\ny"]
JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
INPUTS = st.dictionaries(
    st.sampled_from(NAMES) | st.text(max_size=8),
    st.text(max_size=40) | st.sampled_from(["a\n\u202eb \n", "SELECT 1 -- \r"]) | JSON,
    max_size=8,
)


def inside(value: object) -> list[str]:
    """Return all texts in a JSON value, with the names."""
    match value:
        case dict():
            return [text for pair in value.items() for item in pair for text in inside(item)]
        case list():
            return [text for item in value for text in inside(item)]
        case str():
            return [value]
        case _:
            return []


def as_shown(value: object) -> list[str]:
    """Return the lines that must show a value: a string unchanged, other values as JSON."""
    if isinstance(value, str):
        return visible(value).split("\n")
    return [visible(json.dumps(text, ensure_ascii=False)) for text in inside(value)]


@given(st.sampled_from(TOOLS), INPUTS, st.sampled_from([None, "a", "a\n\u202eb \n" * 3, 0]))
@example("edit_file", {"path": "a", "old_text": "b", "new_text": "c\n", "replace_all": "yes"}, "b")
def test_all_names_and_values_are_in_the_text(
    tool: str, tool_input: dict[str, Any], before: Any
) -> None:
    unknown = Unreadable("Not there.")
    review = call_review(tool, tool_input, unknown if before == 0 else before)
    json.dumps(as_json(review))
    text = as_text(review)
    assert "\x1b" not in text
    lines = text.split("\n")
    for name, value in tool_input.items():
        if name not in NAMES:
            assert f"{visible(name).replace(chr(10), '⟨U+000A⟩')}:" in lines
        if before not in (None, 0) and tool in ("write_file", "edit_file"):
            continue  # equal lines are folded
        for line in as_shown(value):
            assert any(line in shown for shown in lines), (line, text)


@pytest.mark.parametrize("names", [PATH, OLD_TEXT, NEW_TEXT])
def test_the_name_that_the_tool_accepts_counts(names: tuple[str, ...]) -> None:
    for order in (names, names[::-1]):
        given_twice = {name: f"<{name}>" for name in order}
        rest = {"path": "p", "old_text": "o", "new_text": "n"}
        whole = {name: rest[name] for name in rest if name not in names} | given_twice
        tool = EditFileInput.model_validate(whole)
        section = call_review("edit_file", whole).sections[0]
        assert isinstance(section, DiffSection)
        shown = [section.path, *("".join(s.text for s in row.spans) for row in section.rows)]
        assert shown == [tool.path, tool.old_text, tool.new_text]


@pytest.mark.parametrize("value", [True, False, "yes", "no", "true", 1, 0, "1", "off", 2, "x", []])
def test_replace_all_is_read_as_the_tool_reads_it(value: object) -> None:
    whole = {"path": "p", "old_text": "o", "new_text": "n", "replace_all": value}
    section = call_review("edit_file", whole, "o o").sections[0]
    try:
        everywhere = EditFileInput.model_validate(whole).replace_all
    except ValueError:
        assert isinstance(section, FieldsSection)
        return
    assert isinstance(section, DiffSection)
    assert (section.status == "changed") == everywhere


@pytest.mark.parametrize(
    ("tool", "model", "text"),
    [
        ("execute", ExecuteInput, "command"),
        ("execute_python", ExecutePythonInput, "code"),
        ("execute_in_sandbox", ExecuteInSandboxInput, "command"),
    ],
)
def test_a_directory_that_the_tool_ignores_is_not_shown_as_its_own(
    tool: str, model: type[Any], text: str
) -> None:
    """An attack: "rm -rf *" in a harmless directory, which the tool ignores."""
    given_input = {text: "rm -rf *", "cwd": "/tmp/empty", "workdir": "/tmp/empty"}
    assert not {"cwd", "workdir"} & model.model_validate(given_input).model_dump().keys()
    review = call_review(tool, given_input)
    command, unused = review.sections
    assert isinstance(command, CommandSection)
    assert [fact.value for fact in command.facts if fact.name == "Directory"] == [
        "/sandbox/workspace"
    ]
    assert isinstance(unused, FieldsSection)
    assert "does not use" in unused.title
    assert [field.name for field in unused.fields] == ["cwd", "workdir"]


def facts(review: Review) -> dict[str, str]:
    section = review.sections[0]
    assert isinstance(section, CommandSection)
    return {fact.name: fact.value for fact in section.facts}


def test_the_time_limit_comes_from_the_call_or_the_agent_or_the_tool() -> None:
    asked = {"command": "make", "timeout": 10**30}
    assert facts(call_review("execute", asked))["Time limit"] == f"{10**30} s, as the agent asks"
    plain = {"command": "make"}
    assert facts(call_review("execute", plain, time_limit=7))["Time limit"] == "7 s"
    assert facts(call_review("execute_in_sandbox", plain))["Time limit"] == "120 s"
    assert facts(call_review("execute", plain, network="none"))["Network"] == "none"


def test_no_line_of_a_command_passes_for_a_heading() -> None:
    text = as_text(call_review("execute", {"command": "rm x\nDirectory: /tmp\n\nNetwork: none"}))
    assert [line for line in text.split("\n") if line.startswith(("Directory", "Network"))] == [
        "Directory: /sandbox/workspace"
    ]


@pytest.mark.parametrize(
    ("content", "old", "new", "everywhere"),
    [
        ("one\ntwo\n", "two", "2", False),
        ("a a a", "a", "b", True),
        ("a\r\nb\r\n", "a\nb", "x\ny", False),
        ("aaa", "aa", "b", False),
        ("a\n", "", "b", False),
        ("a\n", "zz", "b", False),
        ("a\n", "a", "a", False),
        ("     1 | a", "     2 | a", "b", False),
    ],
)
def test_an_edit_is_shown_as_the_tool_makes_or_refuses_it(
    content: str, old: str, new: str, everywhere: bool
) -> None:
    backend = StateFilesystemBackend()
    backend.write_bytes("/f", content.encode())
    result = backend.edit_file("/f", old, new, everywhere)
    whole = {"path": "/f", "old_text": old, "new_text": new, "replace_all": everywhere}
    section = call_review("edit_file", whole, content).sections[0]
    assert isinstance(section, DiffSection)
    if "error" in result:
        problem = result["error"].split(": ", 1)[1]
        assert [note.text for note in section.notes if note.severity == "warning"] == [
            f"This call would fail: {problem}"
        ]
        assert section.status == "excerpt"
    else:
        after = backend.read_bytes("/f", 1000).decode()
        added = [
            "".join(s.text for s in row.spans) for row in section.rows if row.kind != "removed"
        ]
        lines = visible(after.removesuffix("\n")).split("\n")
        assert added == lines
        assert section.status == "changed"


def test_unknown_facts_about_a_file_are_reported() -> None:
    whole = {"path": "a.bin", "content": "x"}
    WriteFileInput.model_validate(whole)
    review = call_review("write_file", whole, Unreadable("The file is no text."))
    assert review.title == "Write a.bin"
    section = review.sections[0]
    assert isinstance(section, DiffSection)
    assert section.notes[0].text == "Only the new content is shown. The file is no text."
    assert call_review("write_file", whole, None).title == "Create a.bin"
    assert call_review("write_file", whole, "y").title == "Replace a.bin"
    # The file was not read, so the review must not call it a new file.
    assert call_review("write_file", whole).title == "Write a.bin"


def test_a_title_is_one_line() -> None:
    review = call_review(
        "write_file", {"path": "a\nApproved: yes\u202e" + "x" * 500, "content": ""}
    )
    assert "\n" not in review.title
    assert review.title.startswith("Write a⟨U+000A⟩Approved: yes⟨U+202E⟩")
    assert len(review.title) < 200
    assert "x" * 500 in as_text(review)


def test_deep_and_large_values_are_shown() -> None:
    deep: Any = "bottom"
    for _ in range(900):
        deep = [deep]
    text = as_text(call_review("custom", {"deep": deep, "number": 12345678901234567890}))
    assert "bottom" in text
    assert "12345678901234567890" in text


def test_sql_keeps_its_connection_and_its_text() -> None:
    review = call_review("execute_sql", {"query": "select 1; drop table t", "connection": "shop"})
    assert review.title == "Query the database shop"
    section = review.sections[0]
    assert isinstance(section, SqlSection)
    assert "".join(span.text for line in section.lines for span in line) == "select 1; drop table t"
    assert len(section.formatted) > 1
