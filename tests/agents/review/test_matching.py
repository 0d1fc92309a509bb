"""Blocks are correct for any texts, and the time is limited for any texts."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.review.diff import diff_section
from agents.review.matching import (
    LINE_STEPS,
    Block,
    Steps,
    _shortest_edit,
    changed_blocks,
)

LINES = st.lists(st.sampled_from("abcdefgh"), max_size=30)


def rebuilt(old: list[str], new: list[str], blocks: list[Block]) -> list[str]:
    """Rebuild `new` from the unchanged parts of `old` and the new sides of the blocks."""
    made, at = [], 0
    for block in blocks:
        made += old[at : block.old_start] + new[block.new_start : block.new_end]
        at = block.old_end
    return made + old[at:]


@given(LINES, LINES, st.sampled_from([0, 20, 10**6]))
def test_unchanged_parts_and_blocks_make_the_new_side(
    old: list[str], new: list[str], steps: int
) -> None:
    blocks = changed_blocks(old, new, Steps(steps))
    assert rebuilt(old, new, blocks) == new
    for block in blocks:
        assert block.old_end > block.old_start or block.new_end > block.new_start
    for one, next_one in itertools.pairwise(blocks):
        assert next_one.old_start > one.old_end
        assert next_one.old_start - one.old_end == next_one.new_start - one.new_end


@given(LINES, LINES)
def test_parts_between_anchors_keep_as_much_as_possible(old: list[str], new: list[str]) -> None:
    pairs = _shortest_edit([ord(x) for x in old], [ord(x) for x in new], Steps(10**6))
    assert all(old[x] == new[y] for x, y in pairs)
    assert pairs == sorted(set(pairs))
    assert len(pairs) == longest_common(old, new)


def longest_common(a: list[str], b: list[str]) -> int:
    row = [0] * (len(b) + 1)
    for item in a:
        before = row[:]
        for at, other in enumerate(b):
            row[at + 1] = before[at] + 1 if item == other else max(before[at + 1], row[at])
    return row[-1]


def repeated(size: int) -> tuple[str, str]:
    return "a\nb\n" * (size // 4), "b\nb\na\n" * (size // 6)


def shuffled(size: int) -> tuple[str, str]:
    chance = random.Random(1)
    lines = [f"{number % 50}" for number in range(size // 3)]
    other = lines[:]
    chance.shuffle(lines)
    chance.shuffle(other)
    return "\n".join(lines), "\n".join(other)


def every_other(size: int) -> tuple[str, str]:
    old = [f"line number {number}" for number in range(size // 15)]
    new = [f"{line}!" if number % 2 else line for number, line in enumerate(old)]
    return "\n".join(old), "\n".join(new)


def reversed_lines(size: int) -> tuple[str, str]:
    lines = [str(number) for number in range(size // 6)]
    return "\n".join(lines), "\n".join(reversed(lines))


def one_long_line(size: int) -> tuple[str, str]:
    return "a b " * (size // 4), "b a " * (size // 4)


def long_pairs(size: int) -> tuple[str, str]:
    return ("a b " * 480 + "\n") * (size // 1900), ("b a c " * 320 + "\n") * (size // 1900)


@pytest.mark.parametrize(
    "make", [repeated, shuffled, every_other, reversed_lines, one_long_line, long_pairs]
)
def test_hostile_contents_cost_linear_time(make: Callable[[int], tuple[str, str]]) -> None:
    def seconds(size: int) -> float:
        old, new = make(size)
        began = time.process_time()
        diff_section("a", old, new)
        return time.process_time() - began

    quarter, whole = seconds(25_000), seconds(100_000)
    # The constant is for the budgets, which the smaller comparison may not use up.
    assert whole < 6 * quarter + 1.5
    assert whole < 4


def test_a_used_up_budget_gives_one_true_block() -> None:
    old, new = ["x"] * 3 + ["y", "z"] * 400, ["x"] * 3 + ["z", "y", "y"] * 400
    steps = Steps(500)
    blocks = changed_blocks(old, new, steps)
    assert steps.left < 0
    assert len(blocks) == 1
    assert rebuilt(old, new, blocks) == new
    assert len(changed_blocks(old, new, Steps(LINE_STEPS))) > 1


def test_without_a_budget_nothing_is_looked_for_between_the_common_ends() -> None:
    old, new = ["=", "a", "b", "c", "="], ["=", "x", "b", "y", "="]
    assert changed_blocks(old, new, Steps(0)) == [Block(1, 4, 1, 4)]
    assert len(changed_blocks(old, new, Steps(100))) == 2
    # One round of Myers alone may take many steps: the limit applies within the round.
    steps = Steps(2_000)
    changed_blocks(["a", "b"] * 5_000, ["b", "b", "a"] * 5_000, steps)
    assert steps.left > -30_000
