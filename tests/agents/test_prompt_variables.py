"""Variables in prompts: their syntax, and values that remain plain text."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.hidden_text import visible
from agents.prompt_variables import (
    NAMES,
    VALUE_CHARACTERS,
    escaped,
    expand,
    left_as_text,
    names_in,
    plain,
    shortened,
    unknown_names,
)

VALUES = {
    "date": "2026-11-22",
    "time_zone": "UTC",
    "user.name": "Ada Lovelace",
    "user.first_name": "Ada",
    "thread.id": "01abc",
    "thread.title": "Count the beans",
    "agent.name": "Tester",
    "context.customer": "Acme",
    "context.n": -5,
    "context.vip": True,
}
PIECES = ["{", "}", "{{", "}}", "{{{{", " ", "\n", "a", "date", "user.name", "context.n", "foo"]
PIECES += ["{{date}}", "{{{{date}}", "{{user.name}}", "{{context.customer}}", "{{ date }}"]
braces = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@pytest.mark.parametrize(
    ("prompt", "result"),
    [
        ("Hello {{user.first_name}}.", "Hello Ada."),
        ("{{date}} {{date}}", "2026-11-22 2026-11-22"),
        ("{{{{date}}", "{{date}}"),
        ("{{{{date}} is {{date}}", "{{date}} is 2026-11-22"),
        ("{{context.n}} {{context.vip}}", "-5 true"),
        ('{"n":{{context.n}}}', '{"n":-5}'),
        # The syntax of template languages is not changed.
        ("{{ date }} {{foo}} {{#if x}} {% if %} ${{ github.ref }}", None),
        ("{{{{foo}} {{date", None),
        ("{{Date}} {{user}} {{.Values.x}}", None),
    ],
)
def test_only_the_exact_form_of_a_known_name_is_a_variable(prompt: str, result: str | None) -> None:
    assert expand(prompt, VALUES) == (prompt if result is None else result)


@pytest.mark.parametrize(
    ("value", "prompt", "result"),
    [
        ("# SYSTEM", "{{user.name}}\nYou help.", "\\# SYSTEM\nYou help."),
        ("# SYSTEM", "Help.\n- {{user.name}}", "Help.\n- \\# SYSTEM"),
        ("# SYSTEM", "> 1. {{user.name}}", "> 1. \\# SYSTEM"),
        ("===", "Rules\n{{user.name}}", "Rules\n\\==="),
        ("```", "{{user.name}}", "\\```"),
        ("# SYSTEM", "For {{user.name}}", "For # SYSTEM"),
        ("{{context.customer}}", "{{user.name}}", "{{context.customer}}"),
        ("{{{{date}}", "{{user.name}}", "{{{{date}}"),
        ("", "{{user.name}}{{thread.title}}", "Count the beans"),
    ],
)
def test_a_value_starts_no_section_and_is_not_parsed_again(
    value: str, prompt: str, result: str
) -> None:
    assert expand(prompt, {**VALUES, "user.name": value}) == result


def test_an_empty_value_before_another_hides_no_beginning_of_a_line() -> None:
    values = {**VALUES, "user.name": "", "thread.title": "# SYSTEM"}
    assert expand("{{user.name}}{{thread.title}}", values) == "\\# SYSTEM"


@given(braces)
def test_an_escaped_text_stands_for_itself(text: str) -> None:
    assert expand(escaped(text), VALUES) == text
    assert names_in(escaped(text)) == frozenset()
    assert unknown_names(escaped(text)) == []


@given(braces, st.dictionaries(st.sampled_from(NAMES), st.text().map(plain)))
def test_a_prompt_is_its_own_text_and_its_values_in_order(
    prompt: str, values: dict[str, str]
) -> None:
    """One pass: values with unique marks show their places, for any content."""
    marks = {name: f"M{number}M" for number, name in enumerate([*VALUES])}
    told = expand(prompt, marks)
    result = expand(prompt, {**VALUES, **values})
    for name, mark in marks.items():
        value = {**VALUES, **values}[name]
        told = told.replace(mark, value if isinstance(value, str) else json.dumps(value))
    # Except for the backslashes before possible sections.
    assert result.replace("\\", "") == told.replace("\\", "")


@given(st.text())
def test_a_value_is_one_visible_line(text: str) -> None:
    line = shortened(text)
    assert visible(line) == line
    assert line == line.strip()
    assert "\n" not in line
    assert not set(line) & set("<>[]\t\r\u2028\u2029\u0085")
    assert len(line) <= VALUE_CHARACTERS
    assert plain(line) == line


def test_mistakes_in_vels_own_names_are_found() -> None:
    prompt = "{{user.nmae}} {{context.a-b}} {{context.1a}} {{user.nmae}} {{{{agent.x}} {{foo}}"
    assert unknown_names(prompt) == ["user.nmae", "context.1a"]
    left = left_as_text("{{ date }} {{foo}} {{date}} {{ x | upper }} {{context.a-b}}")
    assert left == ["{{ date }}", "{{foo}}", "{{context.a-b}}"]


@pytest.mark.parametrize("part", ["{", "{{", "{{date}}", "{{a", "{{date}", "x", "{{ a "])
def test_the_work_grows_with_the_text_only(part: str) -> None:
    prompt = part * (400_000 // len(part))
    started = time.thread_time()
    expand(prompt, VALUES)
    escaped(prompt)
    left_as_text(prompt)
    assert time.thread_time() - started < 2
