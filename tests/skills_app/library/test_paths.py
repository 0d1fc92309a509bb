"""Paths in a package."""

from __future__ import annotations

import pytest

from skills_app.library.paths import path_problems, shown_path


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "SKILL.md",
        "scripts/run.py",
        ".gitignore",
        "docs/技能 文件.md",
        "Screenshot 3.00\u202fPM.png",
        "a/b/c/d/e/f/g/h/i/j/k",
        "console.md",
        "naïve.md",
        "x" * 200,
    ],
)
def test_paths_that_may_be(path: str) -> None:
    assert path_problems([path]) == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "empty or absolute"),
        ("/etc/passwd", "empty or absolute"),
        ("../x", "lead out"),
        ("a/../../x", "lead out"),
        ("a//b", "empty name"),
        ("./a", "empty name"),
        ("a/", "empty name"),
        ("a\\b", "some systems refuse"),
        ("C:/x", "some systems refuse"),
        ("a:stream", "some systems refuse"),
        ("a\0b", "control or invisible"),
        ("a\nb", "control or invisible"),
        ("a\x1b[2J", "control or invisible"),
        ("a\u202etxt.exe", "control or invisible"),
        ("a\u200bb", "control or invisible"),
        ("a\u3164b", "control or invisible"),
        ("a\udcffb", "not UTF-8"),
        ("a.", "ends with a dot"),
        ("a /b", "starts or ends with a space"),
        (" a", "starts or ends with a space"),
        ("con", "device"),
        ("x/NUL.tar.gz", "device"),
        ("COM1", "device"),
        ("lpt¹.txt", "device"),
        ("aux .md", "device"),
        ("a/b/c/d/e/f/g/h/i/j/k/l", "deeper than 10"),
        ("x" * 201, "longer than 200"),
        ("技" * 100, "longer than 255 bytes"),
    ],
)
def test_paths_that_are_refused(path: str, words: str) -> None:
    (problem,) = path_problems([path])
    assert words in problem.message
    problem.path.encode()


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        (["a", "a"], "more than once"),
        (["A.md", "a.md"], "only in case or spelling"),
        (["Dir/x", "dir/y"], "only in case or spelling"),
        (["caf\u00e9", "cafe\u0301"], "only in case or spelling"),
        (["STRASSE", "straße"], "only in case or spelling"),
        (["a", "a/b"], "a file and a directory"),
        (["a/b", "A"], "case or spelling"),
    ],
)
def test_paths_that_are_equal_on_some_systems_are_refused(paths: list[str], words: str) -> None:
    assert any(words in problem.message for problem in path_problems(paths))


def test_a_long_path_is_shortened_in_messages() -> None:
    assert len(shown_path("x" * 10_000)) == 201
