"""glob and grep: the same for every backend."""

from __future__ import annotations

import pytest

from tests.sandbox.backends.subjects import Subject


def glob(subject: Subject, pattern: str, path: str | None = None) -> list[str]:
    """Return the matches, as paths below the subject's home."""
    result = subject.backend.glob(pattern, path or subject.home)
    prefix = subject.home.rstrip("/") + "/"
    return [match.removeprefix(prefix) for match in result["matches"]]


def fill(subject: Subject) -> None:
    for name in ("a.py", "b.md", "src/c.py", "src/deep/d.py", "src/deep/e.ts", "src/.hidden.py"):
        subject.put(name, f"content of {name}\nneedle\n")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", ["a.py"]),
        ("a.py", ["a.py"]),
        ("**/*.py", ["a.py", "src/.hidden.py", "src/c.py", "src/deep/d.py"]),
        ("src/*.py", ["src/.hidden.py", "src/c.py"]),
        ("src/**", ["src/.hidden.py", "src/c.py", "src/deep/d.py", "src/deep/e.ts"]),
        ("*/deep/*", ["src/deep/d.py", "src/deep/e.ts"]),
        ("**/deep/*.{ts,py}", ["src/deep/d.py", "src/deep/e.ts"]),
        ("**/[de].*", ["src/deep/d.py", "src/deep/e.ts"]),
        ("**/[!a-d].*", ["src/deep/e.ts"]),
        ("?.md", ["b.md"]),
        ("./src/c.py", ["src/c.py"]),
        ("src", []),
        ("nowhere/*", []),
        ("a.py/*", []),
        ("[", []),
        ("{a.py", []),
    ],
)
def test_glob_patterns(subject: Subject, pattern: str, expected: list[str]) -> None:
    fill(subject)

    assert [match for match in glob(subject, pattern) if "memory" not in match] == expected


def test_glob_results_say_how_many_and_whether_all(subject: Subject) -> None:
    fill(subject)
    subject.limit(glob_matches=2)

    result = subject.backend.glob("src/**/*.py", subject.home)

    assert (result["count"], result["truncated"], len(result["matches"])) == (2, True, 2)
    exact = subject.backend.glob("src/deep/*", subject.home)
    assert (exact["count"], exact["truncated"]) == (2, False)
    assert "note" not in exact


def test_an_absolute_pattern_ignores_the_path(subject: Subject) -> None:
    fill(subject)

    result = subject.backend.glob(subject.at("src/*.py"))

    assert result["matches"] == [subject.at("src/.hidden.py"), subject.at("src/c.py")]


def test_glob_without_a_path_starts_in_the_working_directory(subject: Subject) -> None:
    subject.backend.write_file("here.txt", "x")

    expected = f"{subject.backend.cwd.rstrip('/')}/here.txt"
    assert subject.backend.glob("here.*")["matches"] == [expected]


@pytest.mark.parametrize("pattern", ["", "/", "../*", "a/../../b", "[z-a]", "x" * 1001])
def test_an_invalid_glob_is_refused(subject: Subject, pattern: str) -> None:
    assert list(subject.backend.glob(pattern, subject.home)) == ["error"]


def test_glob_in_a_missing_directory_is_an_error(subject: Subject) -> None:
    path = subject.put("a.txt", "")

    assert "error" in subject.backend.glob("*", subject.at("nowhere"))
    assert "error" in subject.backend.glob("*", path)


def test_git_and_node_modules_are_searched_only_when_named(subject: Subject) -> None:
    for name in ("a.js", ".git/hooks/b.js", "node_modules/c/d.js", "lib/node_modules/e.js"):
        subject.put(f"app/{name}", "needle")

    assert glob(subject, "app/**/*.js") == ["app/a.js"]
    assert glob(subject, "app/node_modules/**/*.js") == ["app/node_modules/c/d.js"]
    assert len(subject.backend.grep("needle", subject.at("app"))["matches"]) == 1
    named = subject.backend.grep("needle", subject.at("app/node_modules"))
    assert [match["file"] for match in named["matches"]] == [subject.at("app/node_modules/c/d.js")]


def test_grep_reports_file_line_and_content(subject: Subject) -> None:
    path = subject.put("dir/a.txt", "one\n  two needles\nthree\nneedle")

    assert subject.backend.grep("need.e", subject.at("dir")) == {
        "pattern": "need.e",
        "path": subject.at("dir"),
        "files_searched": 1,
        "matches": [
            {"file": path, "line": 2, "content": "two needles"},
            {"file": path, "line": 4, "content": "needle"},
        ],
        "total_matches": 2,
        "truncated": False,
    }
    assert subject.backend.grep("need.e", path)["total_matches"] == 2


def test_grep_is_case_sensitive_by_default(subject: Subject) -> None:
    path = subject.put("a.txt", "Needle É\n")

    assert subject.backend.grep("needle", path)["matches"] == []
    assert len(subject.backend.grep("needle é", path, ignore_case=True)["matches"]) == 1


@pytest.mark.parametrize(
    ("include", "files"),
    [
        ("*.py", ["src/.hidden.py", "src/c.py", "src/deep/d.py"]),
        ("*.{py,ts}", ["src/.hidden.py", "src/c.py", "src/deep/d.py", "src/deep/e.ts"]),
        ("deep/*", ["src/deep/d.py", "src/deep/e.ts"]),
        ("**/e.ts", ["src/deep/e.ts"]),
        ("*.go", []),
    ],
)
def test_grep_includes_by_name_or_by_path(subject: Subject, include: str, files: list[str]) -> None:
    fill(subject)

    result = subject.backend.grep("needle", subject.at("src"), include)

    assert sorted(match["file"] for match in result["matches"]) == [
        subject.at(name) for name in files
    ]
    assert result["files_searched"] == len(files)


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("^one$", [1]),
        ("two$", [2]),
        ("^$", [3]),
        (r"\s$", [4]),
        ("e", [1, 5]),
        ("one|five", [1, 5]),
        (r"o\s*t", []),
        ("[^x]*", [1, 2, 3, 4, 5]),
        ("(?i)ONE", [1]),
    ],
)
def test_a_pattern_sees_one_line_at_a_time(
    subject: Subject, pattern: str, lines: list[int]
) -> None:
    text = "one\ntwo\n\nx \nfive"
    plain = subject.put("plain.txt", text)
    crlf = subject.put("crlf.txt", text.replace("\n", "\r\n") + "\r\n")

    for path in (plain, crlf):
        matches = subject.backend.grep(pattern, path)["matches"]
        assert [match["line"] for match in matches] == lines


def test_grep_keeps_the_first_matches_and_counts_all(subject: Subject) -> None:
    path = subject.put("a.txt", "x\n" * 150)
    longer = subject.put("b.txt", "x\n" * 1500)

    result = subject.backend.grep("x", path)
    assert (len(result["matches"]), result["total_matches"], result["truncated"]) == (
        100,
        150,
        True,
    )
    result = subject.backend.grep("x", longer)
    assert (result["total_matches"], result["truncated"]) == (1000, True)
    assert "note" in result


def test_grep_shows_the_part_of_a_long_line_that_matches(subject: Subject) -> None:
    path = subject.put("a.txt", "x" * 5000 + "needle" + "y" * 5000)

    shown = subject.backend.grep("needle", path)["matches"][0]["content"]

    assert "needle" in shown
    assert len(shown) <= 502
    assert shown.startswith("…")
    assert shown.endswith("…")


def test_a_line_longer_than_a_block_is_reported_once(subject: Subject) -> None:
    path = subject.put("a.txt", "first\n" + "needle " * 200_000 + "\nneedle\n")

    matches = subject.backend.grep("needle", path)["matches"]

    assert [match["line"] for match in matches] == [2, 3]


def test_line_numbers_are_right_in_files_of_many_blocks(subject: Subject) -> None:
    lines = ["filler " * 20] * 20_000
    for number in (0, 1, 7777, 19_998, 19_999):
        lines[number] = "needle"
    path = subject.put("a.txt", "\n".join(lines))

    matches = subject.backend.grep("^needle$", path)["matches"]

    assert [match["line"] for match in matches] == [1, 2, 7778, 19_999, 20_000]


def test_grep_leaves_binary_files_out_and_reports_a_named_one(subject: Subject) -> None:
    path = subject.put("dir/a.bin", b"needle\x00")
    subject.put("dir/b.txt", b"needle \xe9 latin-1")

    result = subject.backend.grep("needle", subject.at("dir"))

    assert [match["content"] for match in result["matches"]] == ["needle \ufffd latin-1"]
    assert "binary" in subject.backend.grep("needle", path)["error"]


@pytest.mark.parametrize(
    "pattern", ["(", "a)b(?:c", "(?=x)", r"(x)\1", "a{1001}", "x\ny", "y" * 1001, "\ud800", "\\"]
)
def test_a_pattern_that_cannot_be_used_is_refused(subject: Subject, pattern: str) -> None:
    subject.put("a.txt", "x")

    assert list(subject.backend.grep(pattern, subject.home)) == ["error"]


def test_an_unsupported_pattern_is_refused_with_the_supported_syntax(subject: Subject) -> None:
    assert "no look-around" in subject.backend.grep("(?=x)", subject.home)["error"]


def test_grep_of_a_missing_path_or_with_an_empty_include_is_an_error(subject: Subject) -> None:
    assert "no such" in subject.backend.grep("x", subject.at("nowhere"))["error"]
    subject.put("dir/a", "x")
    assert "include" in subject.backend.grep("x", subject.at("dir"), include="/")["error"]


def test_the_limit_cuts_a_search_and_the_result_reports_it(subject: Subject) -> None:
    for number in range(20):
        subject.put(f"dir/{number:02}/a.txt", "needle\n" * 10)

    subject.limit(search_entries=10)
    assert_cut(subject, "too many files")
    subject.limit(search_entries=1000, search_bytes=100)
    assert_cut(subject, "too much data", glob_too=False)
    subject.limit(search_bytes=10**9, search_seconds=0.0)
    assert_cut(subject, "too long")


def test_results_are_bounded_in_size_however_long_the_names_are(subject: Subject) -> None:
    for number in range(20):
        subject.put(f"dir/{number:02}{'x' * 200}/{'y' * 200}", "needle " * 60)
    subject.limit(output=2000)

    for result, items in (
        (subject.backend.ls(subject.at("dir")), "entries"),
        (subject.backend.glob("dir/**", subject.home), "matches"),
        (subject.backend.grep("needle", subject.at("dir")), "matches"),
    ):
        assert result["truncated"] is True
        assert 0 < len(result[items]) < 10


def assert_cut(subject: Subject, reason: str, *, glob_too: bool = True) -> None:
    results = [subject.backend.grep("needle", subject.at("dir"))]
    if glob_too:
        results.append(subject.backend.glob("dir/**", subject.home))
    for result in results:
        assert result["truncated"] is True
        assert reason in result["note"]


def test_grep_includes_by_an_absolute_path(subject: Subject) -> None:
    path = subject.put("docs/sub/a.md", "needle")
    subject.put("docs/sub/a.txt", "needle")
    subject.put("docs/b.md", "needle")
    subject.put("docs/sub/deep/c.md", "needle")
    found = subject.backend.grep("needle", subject.at("docs"), subject.at("docs/sub/*.md"))
    assert [match["file"] for match in found["matches"]] == [path]
