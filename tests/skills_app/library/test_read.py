"""Reading files into a package, and reporting all of its problems together."""

from __future__ import annotations

import pytest

from skills_app.library.package import PackageFile, errors_of
from skills_app.library.problems import InvalidSkill, Problem, Severity
from skills_app.library.read import body_of, read_package, read_text
from skills_app.settings import SkillSettings
from tests.support.packages import BODY, package_files, skill_text


def codes(problems: list[Problem]) -> set[tuple[str, str]]:
    return {(problem.severity.value, problem.code) for problem in problems}


def test_a_package_keeps_every_byte() -> None:
    text = "\ufeff" + skill_text(body="one\r\n\r\ntwo ").replace("\n", "\r\n")
    files = package_files(text, {"scripts/run.py": b"\xff\0", "a.txt": "a"})
    package, problems = read_package(files, "report")
    assert package is not None
    assert problems == []
    assert package.text == text
    assert package.body == "one\r\r\n\r\r\ntwo "
    assert [file.path for file in package.files] == ["SKILL.md", "a.txt", "scripts/run.py"]
    assert package.files[0].data == text.encode()
    assert package.files[2].data == b"\xff\0"


def test_a_lower_case_skill_file_is_taken_under_its_right_name() -> None:
    package, problems = read_package([PackageFile("skill.md", skill_text().encode())])
    assert package is not None
    assert [file.path for file in package.files] == ["SKILL.md"]
    assert codes(problems) == {("warning", "skill_file")}
    both = package_files(None, {"skill.md": "x"})
    assert ("error", "collision") in codes(read_package(both)[1])


def test_a_package_without_a_skill_file_is_reported() -> None:
    package, problems = read_package([PackageFile("Skill.md", skill_text().encode())])
    assert package is None
    assert [problem.message for problem in problems] == [
        "Missing required file: SKILL.md. Rename Skill.md to that."
    ]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (skill_text().encode("utf-16"), "not UTF-8"),
        (skill_text().encode() + b"\xff", "not UTF-8 text (at byte"),
        (skill_text().encode() + b"\xed\xa0\x80", "not UTF-8"),
        (skill_text().encode() + b"\0", "NUL"),
        (skill_text(body="").encode(), "no instructions"),
        (skill_text(body=" \r\n\t").encode(), "no instructions"),
        (b"", "must start with"),
        (b"x" * 500_001, "exceeds the limit of 500,000 bytes"),
    ],
)
def test_a_skill_file_that_is_refused(data: bytes, words: str) -> None:
    package, problems = read_package(package_files(data))
    assert package is None
    assert any(words in problem.message for problem in problems)


def test_the_directory_must_have_the_name() -> None:
    package, problems = read_package(package_files(), "other")
    assert package is not None
    assert codes(problems) == {("warning", "directory")}
    assert "Directory name 'other' must match skill name report" in problems[0].message
    composed = package_files(skill_text("cafe\u0301"))
    assert read_package(composed, "café")[1] == []


def test_all_problems_of_a_package_are_reported_together() -> None:
    files = package_files(
        "---\nname: x\n---\n", {"a/../b": "", "con.txt": "", "A.txt": "", "a.txt": ""}
    )
    package, problems = read_package(files, "y")
    assert package is None
    assert codes(problems) == {
        ("error", "description"),
        ("error", "body"),
        ("error", "path"),
        ("error", "collision"),
    }
    assert len(problems) == 5


def test_limits() -> None:
    limits = SkillSettings.now()
    many = package_files(None, {f"f{n}": "" for n in range(limits.FILES)})
    assert ("error", "too_many") in codes(read_package(many)[1])
    large = package_files(None, {"f": b"x" * (limits.FILE_BYTES + 1)})
    (problem,) = read_package(large)[1]
    assert (problem.path, problem.code) == ("f", "too_large")
    three = package_files(None, {f"f{n}": b"x" * (limits.FILE_BYTES - 1) for n in range(3)})
    (problem,) = read_package(three)[1]
    assert (problem.path, problem.code) == ("", "too_large")


def test_a_nested_skill_file_is_a_file() -> None:
    """Real packages contain chapters, templates, and even a copy of themselves."""
    files = package_files(
        None,
        {
            "references/one/SKILL.md": skill_text("one"),
            "references/report/SKILL.md": skill_text("report"),
            "templates/skill.md": "no head",
        },
    )
    package, problems = read_package(files, "report")
    assert package is not None
    assert len(package.files) == 4
    assert codes(problems) == {("warning", "nested")}


@pytest.mark.parametrize(
    "nested",
    [
        {"x/SKILL.md": skill_text("Weekly Sums")},
        {"weekly-sums/skill.md": "no head"},
        {".claude/skills/Weekly_Sums/SKILL.md": skill_text("other")},
        {"x/Skill.MD": skill_text("weekly-sums")},
        {"x/SKILL.md": skill_text("weekly-sums").encode() + b"\xff"},
    ],
)
def test_a_nested_skill_file_that_would_replace_another_skill_is_refused(
    nested: dict[str, str | bytes],
) -> None:
    files = package_files(None, nested)
    assert read_package(files, "report")[0] is not None
    package, problems = read_package(files, "report", taken={"weekly-sums"})
    assert package is None
    (problem,) = [p for p in problems if p.severity is Severity.ERROR]
    assert (problem.code, problem.path) == ("nested", *nested)
    assert "weekly-sums" in problem.message


def test_a_built_in_skill_is_never_replaced_by_a_nested_one() -> None:
    files = package_files(None, {"x/SKILL.md": skill_text("pdf-processing")})
    assert ("error", "nested") in codes(read_package(files)[1])


@pytest.mark.parametrize(
    ("path", "head", "ways"),
    [
        ("examples/reporting/SKILL.md", "example", "rename its directory, or leave"),
        ("examples/one/SKILL.md", "reporting", "rename `name` in its head, or leave"),
        (
            "examples/reporting/SKILL.md",
            "reporting",
            "rename its directory and `name` in its head, or leave",
        ),
    ],
)
def test_the_refusal_of_a_nested_skill_file_names_the_ways_out(
    path: str, head: str, ways: str
) -> None:
    _, problems = read_package(package_files(None, {path: skill_text(head)}))
    (problem,) = [p for p in problems if p.severity is Severity.ERROR]
    assert problem.path == path
    assert problem.message == (
        "The skill report cannot be used with this file: other programs would load it instead of "
        "the skill reporting. Rename the file, for example to SKILL.example.md, "
        f"{ways} the file out."
    )
    renamed = {path.replace("SKILL.md", "SKILL.example.md"): skill_text(head)}
    package, problems = read_package(package_files(None, renamed))
    assert package is not None
    assert not errors_of(problems)


def test_a_text_alone() -> None:
    package = read_text(skill_text())
    assert (package.head.name, package.body) == ("report", BODY)
    with pytest.raises(InvalidSkill, match="halves of characters") as refusal:
        read_text(skill_text(body="\ud800"))
    assert [problem.code for problem in refusal.value.problems] == ["characters"]
    with pytest.raises(InvalidSkill, match="Missing required field in frontmatter: name"):
        read_text("---\ndescription: x\n---\nbody")


def test_the_body_of_a_stored_skill_is_found() -> None:
    assert body_of(skill_text()) == BODY
    assert body_of("# no head") == "# no head"
