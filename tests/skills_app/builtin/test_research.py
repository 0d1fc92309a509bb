"""research: the log of sources, and that every claim of a report has a source."""

from __future__ import annotations

import pytest

from tests.skills_app.builtin.desk import Desk
from tests.skills_app.builtin.samples import REPORT

pytestmark = pytest.mark.bubblewrap

ADD, CHECK = "research/log_source.py", "research/check_citations.py"
LOG = "/sandbox/shared/research/sources.json"
GOOD = """\
# Output rose

**Date:** 2024-05-01

## Summary

Output rose by 12 per cent. [S1] That is a lot. (interpretation)

## Findings

- Output rose. [S1]
- Prices did not change. [S1, S2]

| plant | rise |
| --- | --- |
| north | 12 per cent [S1] |

## Method

We read two reports, without any mark.

### Steps

Nor here.

## Sources

- S1: a report
"""


def add(desk: Desk, **fields: str) -> tuple[int, str, str]:
    given = {
        "title": "A report",
        "where": "https://example.com",
        "accessed": "2024-05-01",
        **fields,
    }
    words = [word for key, value in given.items() for word in (f"--{key}", value)]
    result = desk.script(ADD, "--log", LOG, *words)
    return result.exit_code, result.stdout.strip(), result.stderr


@pytest.fixture
def logged(desk: Desk) -> Desk:
    desk.run("rm -f " + LOG)
    path = desk.upload("field.txt", REPORT)
    quote = "output rose by 12 per cent after the NEW line"
    assert add(desk, where=path, kind="file", quote=quote)[:2] == (0, "S1")
    assert add(desk)[:2] == (0, "S2")
    return desk


def check(desk: Desk, report: str, *arguments: str) -> list[str]:
    path = desk.upload("report.md", report)
    result = desk.script(CHECK, path, "--log", LOG, *arguments)
    lines = result.stdout.splitlines()
    if result.exit_code == 0:
        assert lines[0].startswith("All "), lines
        return []
    assert result.exit_code == 1, result.stderr
    return lines


def test_a_sourced_report_passes(logged: Desk) -> None:
    assert check(logged, GOOD) == []
    assert check(logged, GOOD, "--figures") == []


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("- Output rose. [S1]", "- Output rose.", "line 11: no source: - Output rose."),
        ("12 per cent [S1] |", "12 per cent |", "line 16: no source"),
        ("[S1, S2]", "[S1, S9]", "[S9] is not in the log."),
        ("[S1, S2]", "[S1]", "S2 is in the log, but the report does not use it."),
        ("That is a lot. (interpretation)", "{{more}}", "line 7: a placeholder"),
        ("## Method", "## Result", "line 20: no source: We read"),
    ],
)
def test_missing_citations_are_found(logged: Desk, old: str, new: str, words: str) -> None:
    problems = check(logged, GOOD.replace(old, new))
    assert any(words in problem for problem in problems), problems


@pytest.mark.slow
def test_each_figure_can_be_required_to_name_its_source(logged: Desk) -> None:
    report = GOOD.replace("- Output rose. [S1]", "- Sales were 40 tons. Output rose. [S1]")
    assert check(logged, report) == []
    assert check(logged, report, "--figures") == [
        "line 11: a figure without a source: - Sales were 40 tons."
    ]


@pytest.mark.slow
def test_a_report_without_claims_does_not_pass(logged: Desk) -> None:
    assert any(
        "no claims" in each for each in check(logged, "# T\n\n## Method\n\nWords. [S1] [S2]\n")
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"kind": "file", "where": "/sandbox/user_uploads/none.txt"}, "no file"),
        (
            {"kind": "file", "where": "/sandbox/user_uploads/field.txt", "quote": "fell"},
            "the quote is not in",
        ),
        ({"accessed": "last week"}, "2024-05-01"),
        ({"accessed": "2024-13-01"}, "2024-05-01"),
        ({"title": " "}, "title is empty"),
    ],
)
def test_a_source_that_is_not_right_is_not_logged(
    logged: Desk, fields: dict[str, str], words: str
) -> None:
    code, printed, said = add(logged, **fields)
    assert (code, printed) == (1, "")
    assert words in said
    assert add(logged, where="https://example.com/3")[1] == "S3"


def test_the_same_source_has_one_id(logged: Desk) -> None:
    assert add(logged)[1] == "S2"


def test_a_log_that_was_changed_by_hand_is_checked(logged: Desk) -> None:
    logged.run(f'sed -i \'s/12 per cent/21 per cent/; s/"S2"/"S1"/\' {LOG}')
    problems = check(logged, GOOD)
    assert "S1 is in the log twice." in problems
    assert any("the quote is not in" in problem for problem in problems)


def test_an_invalid_log_is_refused(desk: Desk) -> None:
    report = desk.upload("r.md", GOOD)
    for content in ("[]", "{", '{"sources": [1]}'):
        log = desk.upload("log.json", content)
        assert desk.script(CHECK, report, "--log", log).exit_code == 3
