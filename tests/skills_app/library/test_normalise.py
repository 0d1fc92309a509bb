"""Names of skills: one spelling each, and the reference library's verdict on others."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills_app.library.normalise import normalise_name, read_name
from skills_app.library.problems import Severity


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("pdf-processing", "pdf-processing"),
        ("PDF Processing", "pdf-processing"),
        ("  PDF__Processing!! ", "pdf-processing"),
        ("--a--b--", "a-b"),
        ("contact-center/web", "contact-center-web"),
        ("ＰＤＦ", "pdf"),
        ("cafe\u0301", "café"),
        ("НАВЫК", "навык"),
        ("技能", "技能"),
        ("İstanbul", "istanbul"),
        ("ΑΣ", "ας"),
        ("../../etc/passwd", "etc-passwd"),
        ("a\u200bb", "ab"),
        ("½ plan", "1-2-plan"),
        ("…", ""),
        ("", ""),
    ],
)
def test_a_name_has_one_spelling(raw: str, name: str) -> None:
    assert normalise_name(raw) == name


@given(st.text(max_size=60))
def test_every_name_is_valid_for_the_reference(raw: str) -> None:
    name = normalise_name(raw)
    assert normalise_name(name) == name
    assert unicodedata.normalize("NFKC", name) == name == name.lower()
    assert all(character.isalnum() or character == "-" for character in name)
    assert "--" not in name
    assert name.strip("-") == name


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("MySkill", "must be lowercase"),
        ("-my-skill", "cannot start or end with a hyphen"),
        ("my--skill", "consecutive hyphens"),
        ("my_skill", "invalid characters"),
        ("НАВЫК", "must be lowercase"),
    ],
)
def test_another_spelling_is_accepted_with_a_warning(said: str, words: str) -> None:
    name, (problem,) = read_name(said, None)
    assert name == normalise_name(said)
    assert words in problem.message
    assert name in problem.message
    assert problem.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("a" * 65, "exceeds 64 character limit (65 chars)"),
        ("pdf\u200b-processing", "invisible"),
        ("pdf\u202eprocessing", "invisible"),
        ("pdf\u3164processing", "invisible"),
        ("pdf\nprocessing", "invisible"),
        ("!!!", "invalid characters"),
        ("../../etc/passwd", "is a path"),
        ("/etc/passwd", "is a path"),
        ("~/x", "is a path"),
        ("..\\x", "is a path"),
        ("CON", "device"),
    ],
)
def test_an_unusable_name_is_refused(said: str, words: str) -> None:
    name, (problem,) = read_name(said, "fallback")
    assert name == ""
    assert words in problem.message
    assert problem.severity is Severity.ERROR


def test_without_a_name_the_directory_gives_it() -> None:
    name, (problem,) = read_name(" ", "My Skill")
    assert (name, problem.severity) == ("my-skill", Severity.WARNING)
    assert "Missing required field in frontmatter: name" in problem.message
    for directory in (None, "", "..."):
        assert read_name("", directory)[1][0].severity is Severity.ERROR
