"""Triggers of authors, matched against messages, without slow patterns."""

from __future__ import annotations

import time

import pytest

from skills_app.library.search.triggers import MAX_MESSAGE, Message, matches


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        ("sql*", "help with SQL queries"),
        ("query", "two queries"),
        ("database", "our Databases"),
        ("find out", "please FIND  out why"),
        ("*.csv", "look at sales.csv"),
        ("*.csv", "sales.csv, then stop"),
        ("sum* of *.xlsx", "the summary of my budget.xlsx"),
        ("re*port", "a review of the port"),
        (".py", "run main.py"),
        ("café", "a CAFE"),
        ("报告", "写一份销售报告"),
        ("報*書", "報告書"),
        ("research *", "research the market"),
    ],
)
def test_a_trigger_is_found_in_a_message(trigger: str, text: str) -> None:
    assert matches(trigger, Message.of(text))


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        ("app", "an apple"),
        ("art", "start"),
        ("sql*", "mysql"),
        ("*.csv", "sales.csvx"),
        (".py", "happy"),
        ("find out", "out to find"),
        ("b*a", "a b"),
        ("", "anything"),
        ("*", "anything"),
        ("* *", "any thing"),
        ("**", ""),
        ("query", ""),
        ("a" * 201, "a" * 300),
        ("a*" * 101, "a" * 300),
    ],
)
def test_it_does_not(trigger: str, text: str) -> None:
    assert not matches(trigger, Message.of(text))


def test_syntax_of_patterns_is_text() -> None:
    assert matches("c++ (old)*", Message.of("port the C++ (old) code"))
    assert not matches("a.c", Message.of("abc"))
    assert not matches("(a+)+$", Message.of("a" * 100))


def test_the_time_is_linear() -> None:
    start = time.process_time()
    message = Message.of("a" * 1_000_000)
    for trigger in (
        "a*" * 99 + "b",
        "*" * 199 + "b",
        ("a" * 98 + "*") * 2 + "b",
        "a" * 198 + "b*",
    ):
        for _ in range(100):
            assert not matches(trigger, message)
    assert len(message.text) == MAX_MESSAGE
    assert time.process_time() - start < 2


@pytest.mark.parametrize("trigger", ["the", "please", "*", "*e*", "*the*", "* *", "a*"])
def test_a_trigger_that_fits_every_message_matches_none(trigger: str) -> None:
    assert not matches(trigger, Message.of("Please fix the table and the chart."))


def test_short_words_and_phrases_of_common_words_are_triggers() -> None:
    assert matches("find out", Message.of("Find out who did it."))
    assert matches("CI", Message.of("Why is the CI red?"))
