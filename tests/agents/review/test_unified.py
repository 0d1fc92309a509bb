"""Unified diffs in the format of `diff -u`: complete, and in limited time for any lines."""

from __future__ import annotations

import difflib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.review.matching import LINE_STEPS, Steps, unified_lines
from agents.services.files.changes import DIFF_LINES, text_diff

HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
LINES = st.lists(st.sampled_from(["a", "b", "c", "", "-", "@@ -1 +1 @@"]), max_size=40)


def applied(old: list[str], diff: list[str]) -> list[str]:
    """Apply the diff to the old lines as `patch` does, and check all lines and numbers."""
    made: list[str] = []
    place = 0
    for number, line in enumerate(diff):
        if line[0] == "@":
            found = HEADER.fullmatch(line)
            assert found is not None
            start, count, new_start, new_count = (
                1 if text is None else int(text) for text in found.groups()
            )
            begin = start - (count > 0)
            made += old[place:begin]
            place = begin
            assert new_start - (new_count > 0) == len(made)
            body = [part[0] for part in hunk_of(diff, number)]
            assert (count, new_count) == (
                len(body) - body.count("+"),
                len(body) - body.count("-"),
            )
            continue
        if line[0] != "+":
            assert line[1:] == old[place]
            place += 1
        if line[0] != "-":
            made.append(line[1:])
    return made + old[place:]


def hunk_of(diff: list[str], number: int) -> list[str]:
    body: list[str] = []
    for line in diff[number + 1 :]:
        if line[0] == "@":
            break
        body.append(line)
    return body


@given(LINES, LINES, st.integers(0, 3), st.sampled_from([0, 20, LINE_STEPS]))
def test_the_diff_makes_the_new_lines_of_the_old_ones(
    old: list[str], new: list[str], context: int, steps: int
) -> None:
    diff = list(unified_lines(old, new, Steps(steps), context))
    assert applied(old, diff) == new
    assert bool(diff) == (old != new)


def test_it_is_written_as_others_write_it() -> None:
    old = [f"line {number}" for number in range(40)]
    new = ["first", *old[:10], "tenth", *old[11:30], *old[31:], "last"]
    others = list(difflib.unified_diff(old, new, lineterm="", n=3))[2:]
    assert list(unified_lines(old, new, Steps(LINE_STEPS))) == others


@pytest.mark.slow
def test_files_that_are_hard_to_compare_share_their_steps() -> None:
    """50 of such files took 17 seconds in a page."""
    before = "a\nb\n" * (DIFF_LINES // 2)
    after = "a\nc\n" * 99
    steps = Steps(LINE_STEPS)
    for _ in range(50):
        diff = text_diff(before.encode(), after.encode(), steps)
        assert diff is not None
        assert applied(before.splitlines(), diff.split("\n")) == after.splitlines()
    assert steps.left < 0
