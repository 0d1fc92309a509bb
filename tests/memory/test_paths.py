"""Valid paths of skills in a memory: names of any script, one spelling of each."""

from __future__ import annotations

import pytest

from memory.paths import InvalidPath, check_path, check_writable


@pytest.mark.parametrize(
    "name",
    [
        "weekly-report",
        "überblick",
        "отчёт-2",
        "ανάλυση",
        "数据-分析",
        "データ",
        "보고서",
        "a1",
        "7",
    ],
)
def test_a_skill_may_be_called_in_any_script(name: str) -> None:
    assert check_writable(f"skills/{name}.md") == f"skills/{name}.md"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("UPPER", "lower-case"),
        ("Über", "lower-case"),
        ("u\u0308ber", "lower-case"),  # not composed
        ("ﬁles", "lower-case"),  # a ligature
        ("a--b", "lower-case"),
        ("-a", "lower-case"),
        ("a_b", "lower-case"),
        ("a b", "lower-case"),
        ("", "lower-case"),
        ("a\u200db", "lower-case"),
        ("a\n", "lower-case"),
        ("x/y", "lower-case"),
        ("..", "lower-case"),
        ("x" * 65, "64 characters"),
        ("rep\u043ert", "CYRILLIC and LATIN"),
    ],
)
def test_invalid_names_of_skills_are_refused(name: str, why: str) -> None:
    with pytest.raises(InvalidPath, match=why):
        check_path(f"skills/{name}.md")


@pytest.mark.parametrize(
    "path",
    [
        "knowledge/con.md",
        "knowledge/NUL",
        "knowledge/a/Com1.tar.gz",
        "knowledge/aux/notes.md",
        "knowledge/lpt9 .md",
        "skills/prn.md",
    ],
)
def test_names_that_windows_reserves_are_refused(path: str) -> None:
    with pytest.raises(InvalidPath, match="Windows reserves"):
        check_path(path)


@pytest.mark.parametrize("path", ["knowledge/console.md", "knowledge/com10.md", "skills/nuls.md"])
def test_names_that_only_start_like_reserved_ones_are_allowed(path: str) -> None:
    assert check_path(path) == path


def test_other_files_keep_to_ascii() -> None:
    assert check_path("knowledge/a b.md") == "knowledge/a b.md"
    with pytest.raises(InvalidPath):
        check_path("knowledge/ü.md")
