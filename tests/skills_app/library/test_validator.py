"""Validation reports the problems of the public reference validator, and Vel's further ones.

The cases are those of the reference library's own tests. If it has a message for a problem, Vel's
message contains it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from skills_app.library.problems import Problem, Severity
from skills_app.library.validator import validate, validate_archive
from tests.support.packages import make_folder, make_zip, skill_text


def told(problems: list[Problem]) -> str:
    return "\n".join(str(problem) for problem in problems)


def package(tmp_path: Path, directory: str, text: str, file: str = "SKILL.md") -> Path:
    place = tmp_path / directory
    place.mkdir()
    (place / file).write_text(text)
    return place


@pytest.mark.parametrize(
    ("directory", "text"),
    [
        ("my-skill", skill_text("my-skill")),
        ("my-skill", skill_text("my-skill", "A skill.", "license: MIT", "metadata:", "  a: b")),
        ("my-skill", skill_text("my-skill", "A skill.", "metadata:", "  version: 1.0")),
        ("my-skill", skill_text("my-skill", "A.", "allowed-tools: Bash(jq:*) Bash(git:*)")),
        ("my-skill", skill_text("my-skill", "A.", "allowed-tools:", "- Read", "- Write")),
        ("my-skill", skill_text("my-skill", "A.", "allowed-tools: Read, Write")),
        ("my-skill", skill_text("my-skill", "A.", "compatibility: Requires Python 3.11+")),
        ("my-skill", skill_text("my-skill", "A.", "metadata:", "  tags:", "    - a", "    - b")),
        ("my-skill", skill_text("my-skill", "A.", "license:", "compatibility: ''")),
        ("my-skill", skill_text("my-skill", "'A: b --'", "# a comment")),
        ("技能", skill_text("技能")),
        ("мой-навык", skill_text("мой-навык")),
        ("навык", skill_text("навык")),
        ("caf\u00e9", skill_text("cafe\u0301")),
        ("a" * 64, skill_text("a" * 64, "x" * 1024, f"compatibility: {'x' * 500}")),
        ("my-skill", skill_text("my-skill").replace("\n", "\r\n")),
    ],
)
def test_skills_that_the_reference_validator_accepts_have_no_problems(
    tmp_path: Path, directory: str, text: str
) -> None:
    assert validate(package(tmp_path, directory, text)) == []


@pytest.mark.parametrize(
    ("directory", "text", "words"),
    [
        ("MySkill", skill_text("MySkill"), "must be lowercase"),
        ("a" * 70, skill_text("a" * 70), "exceeds 64 character limit (70 chars)"),
        ("-my-skill", skill_text("-my-skill"), "cannot start or end with a hyphen"),
        ("my--skill", skill_text("my--skill"), "consecutive hyphens"),
        ("my_skill", skill_text("my_skill"), "invalid characters"),
        ("wrong-name", skill_text("correct-name"), "must match skill name"),
        ("my-skill", skill_text("my-skill", "A.", "unknown_field: x"), "Unexpected fields"),
        ("my-skill", skill_text("my-skill", "A.", "version: 1.0"), "Unexpected fields"),
        ("НАВЫК", skill_text("НАВЫК"), "must be lowercase"),
        ("my-skill", skill_text("my-skill", "x" * 1100), "exceeds 1024 character limit"),
        ("my-skill", skill_text("my-skill", "''"), "must be a non-empty string"),
        (
            "my-skill",
            skill_text("my-skill", "A.", f"compatibility: {'x' * 550}"),
            "exceeds 500 character limit",
        ),
        ("my-skill", "---\ndescription: A\n---\nx", "Missing required field in frontmatter: name"),
        ("my-skill", "---\nname: my-skill\n---\nx", "Missing required field"),
        ("my-skill", "# No frontmatter here", "must start with its YAML frontmatter"),
        ("my-skill", "---\nname: my-skill\ndescription: A\n", "not properly closed with"),
        ("my-skill", "---\nname: [invalid\ndescription: b\n---\nx", "invalid YAML"),
        ("my-skill", "---\n- just\n- a\n- list\n---\nx", "must be a YAML mapping"),
        ("my-skill", "---\n---\nx", "Missing required field in frontmatter: description"),
    ],
)
def test_problems_of_the_reference_validator_are_reported(
    tmp_path: Path, directory: str, text: str, words: str
) -> None:
    words = words.removesuffix(" with")
    assert words in told(validate(package(tmp_path, directory, text)))


@pytest.mark.parametrize(
    ("head", "code"),
    [
        ("metadata:\n  tags: [a, b]\n", "flow"),
        ("metadata: {a: b}\n", "flow"),
        ("allowed-tools: []\n", "flow"),
        ("license: x --- y\n", "dashes"),
        ("metadata:\n    a:\n      b: c\n    d:\n        e: f\n", "indentation"),
        ("metadata:\n  <<: b\n", "merge"),
        ("license: MIT\n...\n", "dots"),
        ("license: 'MIT\x85x'\n", "line_ends"),
    ],
)
def test_yaml_that_the_reference_cannot_read_is_a_warning(
    tmp_path: Path, head: str, code: str
) -> None:
    place = package(tmp_path, "my-skill", skill_text("my-skill", "A.", head.rstrip("\n")))
    (problem,) = validate(place)
    assert (problem.severity, problem.code) == (Severity.WARNING, code)


@pytest.mark.parametrize("field", ["description", "compatibility"])
def test_a_field_that_only_an_import_shortens_is_an_error(tmp_path: Path, field: str) -> None:
    words = {"description": "Counts.", "compatibility": "Linux"} | {field: "word " * 300}
    text = skill_text("my-skill", words["description"], f"compatibility: {words['compatibility']}")
    (problem,) = validate(package(tmp_path, "my-skill", text))
    assert (problem.severity, problem.code) == (Severity.ERROR, "too_long")


def test_a_byte_order_mark_is_a_warning(tmp_path: Path) -> None:
    (problem,) = validate(package(tmp_path, "a", "\ufeff" + skill_text("a")))
    assert (problem.severity, problem.code) == (Severity.WARNING, "bom")


def test_a_lower_case_skill_file_is_accepted_and_the_upper_case_preferred(tmp_path: Path) -> None:
    place = package(tmp_path, "my-skill", skill_text("my-skill"), "skill.md")
    assert {problem.severity for problem in validate(place)} == {Severity.WARNING}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nonexistent", "does not exist"),
        ("file.txt", "Not a directory"),
        ("empty", "Missing required file: SKILL.md"),
        ("half", "Missing required file: SKILL.md"),
    ],
)
def test_a_path_without_a_package_is_one_problem(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "file.txt").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "half").mkdir()
    (tmp_path / "half/con").touch()
    for path in (tmp_path / name, str(tmp_path / name)):
        (problem,) = validate(path)
        assert words in problem.message


def test_all_problems_are_reported_together(tmp_path: Path) -> None:
    place = make_folder(tmp_path / "other", {"SKILL.md": "---\nname: A b\nx: [y]\n---\n"})
    (place / "link").symlink_to("/etc/passwd")
    assert {problem.code for problem in validate(place)} == {
        "special",
        "unexpected_fields",
        "name",
        "description",
        "body",
    }


def test_an_upload_is_validated_alike() -> None:
    data = make_zip({"a/SKILL.md": skill_text("a", "A.", "metadata: {b: c}")})
    assert [problem.code for problem in validate_archive(data, "a.skill")] == ["flow"]
    assert validate_archive(make_zip(), "report.zip") == []
    assert validate_archive(skill_text().encode(), "SKILL.md") == []
    assert [problem.code for problem in validate_archive(b"x", "a.zip")] == ["archive"]
