"""Formatting changes only white space, and is skipped if that is not certain."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.review.sql import MAX_CHARACTERS, formatted_sql

PIECES = ["select ", "a", ", ", "from t ", "where ", "'x  y'", '"a b"', "and ", "(", ")", "; "]
PIECES += ["case when 1 then 2 end ", "'", '"', "\n", "1=1 ", "in (", "join u on ", "ü"]
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


def test_clauses_are_on_separate_lines() -> None:
    assert formatted_sql("select a, b from t where x = 1 and y = ' a  b '") == (
        "select a,\n       b\nfrom t\nwhere x = 1\n  and y = ' a  b '"
    )


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_only_white_space_outside_of_quotes_changes(statement: str) -> None:
    formatted = formatted_sql(statement)
    if formatted is not None:
        assert "".join(formatted.split()) == "".join(statement.split())
        assert QUOTED.findall(formatted) == QUOTED.findall(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "select 1 -- harmless\n; drop table t",
        "select 1 # comment in one dialect, operator in another",
        "select /* /* */ drop table t */ 1",
        r"select 'a\'; drop table t --'",
        "select $$a; b$$",
    ],
)
def test_syntax_that_differs_between_dialects_stays_unchanged(statement: str) -> None:
    assert formatted_sql(statement) is None


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "piece", ["(", "f() over (partition by a) ", "(a,b),", "case when ", "a.", "1+", "'x',", "f(a,"]
)
def test_hostile_statements_are_bounded_in_time_and_size(piece: str) -> None:
    statement = (piece * MAX_CHARACTERS)[:MAX_CHARACTERS]
    began = time.process_time()
    formatted = formatted_sql(statement)
    assert time.process_time() - began < 2
    assert formatted is None or len(formatted) < 5 * MAX_CHARACTERS
    assert formatted_sql(statement + "x") is None
