"""Normal forms of hostile texts."""

from __future__ import annotations

import sys
import time
import unicodedata

import pytest
import re2  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from sandbox.backends.normal_form import MOST_MARKS, normal_form

FORMS = ("NFC", "NFD", "NFKC", "NFKD")


@given(st.sampled_from(FORMS), st.text(max_size=MOST_MARKS))
def test_a_short_text_has_its_normal_form(form: str, text: str) -> None:
    assert normal_form(form, text) == unicodedata.normalize(form, text)  # type: ignore[arg-type]


@given(
    st.sampled_from(FORMS), st.text(st.sampled_from("aé\u0301\u0327ﬁ가\u1100\ud800 "), max_size=80)
)
def test_a_text_with_few_marks_has_its_normal_form(form: str, text: str) -> None:
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character)[0] == "M" else 0
        if marks > MOST_MARKS:
            return
    assert normal_form(form, text) == unicodedata.normalize(form, text)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", FORMS)
def test_marks_are_sorted_in_linear_time(form: str) -> None:
    text = "a" + "\u0301\u0327" * 100_000 + " b"
    begun = time.process_time()
    found = normal_form(form, text)  # type: ignore[arg-type]
    assert time.process_time() - begun < 5  # under 0.1 s; quadratic would be a minute
    assert found.endswith(" b")
    assert len(found) <= MOST_MARKS + 3


def test_the_expression_matches_all_sorted_marks() -> None:
    sorted_ones = [
        chr(code) for code in range(sys.maxunicode + 1) if unicodedata.combining(chr(code))
    ]
    unknown = [each for each in sorted_ones if re2.fullmatch(r"\pM", each) is None]
    assert not unknown
