"""Ids have one format and sort by creation time."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from agents.ids import ID_LENGTH, new_id


def test_ids_of_a_millisecond_are_in_the_order_of_their_making() -> None:
    made = [new_id() for _ in range(5_000)]
    assert all(one < other for one, other in pairwise(made))
    assert {len(one) for one in made} == {ID_LENGTH}


def test_a_clock_that_is_set_back_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = new_id()
    monkeypatch.setattr(time, "time_ns", lambda: 1_600_000_000_000_000_000)
    assert before < new_id() < new_id()


def test_the_next_id_cannot_be_predicted() -> None:
    made = [int.from_bytes(new_id()[13:].encode()) for _ in range(1_000)]
    steps = {later - earlier for earlier, later in pairwise(made)}
    assert len(steps) > 990


def test_threads_make_different_ones() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: new_id(), range(4_000)))
    assert len(set(made)) == 4_000
