"""The fields of the frontmatter, in every common spelling."""

from __future__ import annotations

from typing import Any

import pytest

from skills_app.library.head import read_head
from skills_app.library.package import Head
from skills_app.library.problems import Severity


def head_of(**fields: Any) -> Head:
    head, problems = read_head({"name": "report", "description": "Writes.", **fields})
    assert head is not None, problems
    return head


def problems_of(**fields: Any) -> dict[str, tuple[Severity, str]]:
    _, problems = read_head({"name": "report", "description": "Writes.", **fields})
    return {problem.code: (problem.severity, problem.message) for problem in problems}


@pytest.mark.parametrize(
    ("given", "tools"),
    [
        ("Read Write", ("Read", "Write")),
        ("Read, Write,Bash", ("Read", "Write", "Bash")),
        (["Read", "Bash(git add:*)"], ("Read", "Bash(git add:*)")),
        ("Bash(git:*) Bash(git add:*), Read", ("Bash(git:*)", "Bash(git add:*)", "Read")),
        ("Bash(a (b, c) d) Read", ("Bash(a (b, c) d)", "Read")),
        ("Read Read", ("Read",)),
        ("", ()),
        ([], ()),
    ],
)
def test_allowed_tools(given: Any, tools: tuple[str, ...]) -> None:
    assert head_of(**{"allowed-tools": given}).allowed_tools == tools
    assert head_of(allowed_tools=given).allowed_tools == tools


def test_missing_allowed_tools_are_none_and_required_tools_never_count() -> None:
    head = head_of(tools_required="Bash Read")
    assert head.allowed_tools is None
    assert head.tools_required == ("Bash", "Read")
    assert head_of(**{"tools-required": ["Bash"]}).tools_required == ("Bash",)


@pytest.mark.parametrize(
    "given", ["Bash(git", "Bash)git", {"a": "b"}, [["Read"]], ["Bash(git", ")"]]
)
def test_allowed_tools_that_cannot_be_read_are_refused(given: Any) -> None:
    severity, message = problems_of(**{"allowed-tools": given})["allowed-tools"]
    assert severity is Severity.ERROR
    assert "parentheses" in message


def test_lists_in_every_form() -> None:
    assert head_of(tags=["a", " b "]).tags == head_of(tags="a, b").tags == ("a", "b")
    assert head_of(triggers="make a report, sum *\nup").triggers == (
        "make a report",
        "sum *",
        "up",
    )
    assert head_of(requires="PDF_Tools other").requires == ("pdf-tools", "other")


def test_fields_are_read_back_from_metadata() -> None:
    head = head_of(
        metadata={
            "version": "1.0",
            "author": "Ann",
            "vel-title": '"A: b"',
            "vel-tags": '["a, b", "c"]',
            "vel-triggers": '["x *"]',
            "vel-requires": '["other"]',
            "vel-tools-required": '["Bash"]',
            "vel-priority": "7",
            "vel-extra": '{"homepage": "https://x.example"}',
            "team": "blue",
        }
    )
    assert (head.version, head.author, head.title, head.priority) == ("1.0", "Ann", "A: b", 7)
    assert head.tags == ("a, b", "c")
    assert (head.triggers, head.requires, head.tools_required) == (("x *",), ("other",), ("Bash",))
    assert head.extra == {"homepage": "https://x.example"}
    assert head.metadata == {"team": "blue"}


def test_a_top_level_field_wins() -> None:
    head = head_of(version="2", tags="a", metadata={"version": "1", "vel-tags": '["b"]'})
    assert (head.version, head.tags, head.metadata) == ("2", ("a",), {})


def test_tags_of_others_below_metadata_are_read_and_kept() -> None:
    head = head_of(metadata={"tags": ["a", "b"], "openclaw": {"x": ["y"]}})
    assert head.tags == ("a", "b")
    assert head.metadata == {"tags": '["a", "b"]', "openclaw": '{"x": ["y"]}'}


def test_unknown_fields_are_kept_and_reported() -> None:
    fields = {"homepage": "x", "inputs": ["a"], "requires": {"mcp": ["rube"]}, "priority": "HIGH"}
    head = head_of(**fields)
    assert head.extra == {
        "homepage": "x",
        "inputs": '["a"]',
        "requires": '{"mcp": ["rube"]}',
        "priority": "HIGH",
    }
    assert (head.requires, head.priority) == ((), 0)
    found = problems_of(**fields)
    assert "Unexpected fields" in found["unexpected_fields"][1]
    assert {severity for severity, _ in found.values()} == {Severity.WARNING}
    assert {"requires", "priority"} < set(found)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"description": ""}, "Field 'description' must be a non-empty string"),
        ({"description": ["a"]}, "Field 'description' must be a non-empty string"),
        ({"name": ["report"]}, "Field 'name' must be a non-empty string"),
        ({"name": ""}, "Missing required field in frontmatter: name"),
        ({"tags": [f"t{n}" for n in range(101)]}, "more than 100"),
        ({"metadata": {f"k{n}": "v" for n in range(101)}}, "more than 100 entries in metadata"),
        ({"description": "a\0b"}, "control characters"),
        ({"metadata": {"a\x1b": "b"}}, "control characters"),
        ({"metadata": {"vel-title": '"\\ud800"'}}, "halves of characters"),
        ({"enabled": "maybe"}, "true or false"),
    ],
)
def test_a_refusal_names_its_reason(fields: dict[str, Any], words: str) -> None:
    head, problems = read_head({"name": "report", "description": "Writes.", **fields})
    assert head is None
    assert any(words in p.message and p.severity is Severity.ERROR for p in problems)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("Counts beans. " * 100, ("Counts beans. " * 73).strip()),
        ("beans " * 200, ("beans " * 170).strip() + "…"),
        ("x" * 1025, "x" * 1023 + "…"),
    ],
)
def test_a_description_that_is_too_long_is_shortened_and_reported(given: str, kept: str) -> None:
    head, (problem,) = read_head({"name": "report", "description": given})
    assert head is not None
    assert head.description == kept
    assert len(kept) <= 1024
    assert f"exceeds 1024 character limit ({len(given.strip())} chars)" in problem.message
    assert problem.severity is Severity.WARNING


def test_all_problems_are_reported_together() -> None:
    head, problems = read_head({"compatibility": "x" * 501, "enabled": "x", "a": "b"})
    assert head is None
    assert {"name", "description", "too_long", "enabled", "unexpected_fields"} == {
        problem.code for problem in problems
    }


@pytest.mark.parametrize("text", ["a\\u0000b", "tab\tand\nline", "emoji 😀", "\x85\xa0"])
def test_texts_that_only_look_odd_are_taken(text: str) -> None:
    assert head_of(license=f"x{text}x").license == f"x{text}x"


@pytest.mark.parametrize("value", ["[1]", "{", "[" * 9000, '{"a": 1}', "9" * 5000])
def test_a_carried_field_that_is_something_else_is_kept(value: str) -> None:
    for key in ("vel-tags", "vel-requires", "vel-extra"):
        head = head_of(metadata={key: value})
        assert (head.tags, head.requires, head.metadata) == ((), (), {})
        assert len(head.extra) == 1


def test_enabled() -> None:
    assert not head_of(enabled="false").enabled
    assert not head_of(enabled="No").enabled
    assert head_of(enabled="true").enabled
    assert head_of().enabled
