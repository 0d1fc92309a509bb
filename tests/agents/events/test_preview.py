"""Previews of long inputs in events and lists: short, with the number of missing characters."""

from __future__ import annotations

from typing import Any

import pytest

from agents.events.append import PREVIEW_BYTES, dump
from agents.events.preview import MOST_CHARACTERS, PARTS, preview_input


def deep(levels: int) -> Any:
    return "x" * 50 if not levels else {str(number): deep(levels - 1) for number in range(40)}


def test_a_short_input_is_whole() -> None:
    given = {"a": "x" * (PREVIEW_BYTES - 50), "b": [None, 1]}
    assert preview_input(given) == given


def test_fields_and_parts_that_are_left_out_are_counted() -> None:
    shown = preview_input({"list": list(range(5_000)), **{f"k{n}": n for n in range(2_000)}})
    assert len(shown) == PARTS + 1
    assert shown["…"] == f"{2_001 - PARTS:,} more fields"
    assert shown["list"][-1] == f"… {5_000 - PARTS:,} more"


@pytest.mark.parametrize(
    "given",
    [
        {"x" * 1_000_000: 1},
        {f"{number}" * 10_000: 1 for number in range(100)},
        deep(3),
        {"a": [["x" * 100] * 60] * 60},
    ],
    ids=["a long name", "long names", "deep", "lists"],
)
def test_no_input_makes_a_long_event(given: Any) -> None:
    shown = preview_input(given)
    assert len(dump(shown)) <= MOST_CHARACTERS
    assert "bytes" in dump(shown) or "more" in dump(shown)
