"""Words in the form that the search compares."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills_app.library.search.query import read_query
from skills_app.library.search.tokens import STEMS, stems, vocabulary
from tests.skills_app.library.search import stem_table


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("queries", "query"),
        ("Summarising", "summarise"),
        ("café", "cafe"),
        ("ＰＤＦ", "pdf"),
        ("sales.xlsx", "sales xlsx"),
        ("dataFrame", "data frame"),
        ("C++ and C#", "cplusplus and csharp"),
        ("ASP.NET .NET", "asp.net dotnet"),
        ("customer's", "customer"),
        ("отчёты", "отчёт"),
    ],
)
def test_spellings_that_are_one_word(one: str, other: str) -> None:
    assert stems(one) == stems(other)


@pytest.mark.slow
def test_the_stored_stems_are_those_of_the_stemmer() -> None:
    assert STEMS.read_text(encoding="ascii") == stem_table.table(), stem_table.__doc__


def test_scripts_without_blanks_give_neighbours() -> None:
    assert stems("売上報告") == ["売上", "上報", "報告"]
    assert set(stems("報告")) <= set(stems("売上報告書"))


def test_a_phrase_has_its_own_name() -> None:
    assert "sign_off" in vocabulary().with_phrases(stems("please sign off on it"))
    assert "approv" in dict(read_query("sign off").wants[-1].answers)


def test_long_runs_are_data_not_words() -> None:
    assert stems("a" * 41) == []
    assert stems("a" * 40) != []


@pytest.mark.slow
@given(st.text(max_size=300))
def test_no_text_raises(text: str) -> None:
    read_query(text)


@pytest.mark.parametrize(
    "text",
    ["", "\0", "\ud800", '" OR NEAR( *', "((((", "🙂" * 50, "x" * 100_000, "a b " * 30_000],
)
def test_odd_queries_are_only_text(text: str) -> None:
    assert read_query(text).total >= 0
