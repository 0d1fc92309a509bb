"""Messages between a worker and its helpers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from agents.features.databases.drivers.changes import Changes, TableChanges
from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.helper import messages
from agents.features.databases.drivers.helper.frames import Channel, Closed, Late, TooLong
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget
from tests.agents.features.databases.drivers.shop import ask


@pytest.fixture
def pipe() -> Iterator[Channel]:
    """Open a channel that reads its own messages."""
    channel = Channel(*os.pipe())
    yield channel
    channel.close()


@pytest.mark.parametrize(
    "value",
    [
        None, [1, -1, 1.5, 10**30], {"a": ["\u0000", "\ud800", "ö😀"]}, b"\x00\xff",
        date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5, 6, UTC), time_of_day(1, 2),
        timedelta(days=-1, microseconds=7),
        Decimal("1.10"), UUID(int=7), {"\0type": "x"},
    ],
)  # fmt: skip
def test_values_arrive_as_they_were_sent(value: Any, pipe: Channel) -> None:
    pipe.send({"value": value})
    assert pipe.receive(1000) == {"value": value}


def test_a_reader_bounds_the_length_and_the_time(pipe: Channel) -> None:
    with pytest.raises(Late):
        pipe.receive(1000, time.monotonic() + 0.01)
    with pytest.raises(Late):
        pipe.send("x" * 10_000_000, time.monotonic() + 0.01)
    with pytest.raises(TooLong):
        pipe.receive(1000)


def test_a_closed_pipe_is_reported() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"\0\0\0\x09[1, 2")
    os.close(writing)
    null = os.open(os.devnull, os.O_WRONLY)
    channel = Channel(reading, null)
    with pytest.raises(Closed):
        channel.receive(1000)
    channel.close()
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(Closed):
        Channel(0, writing).send("x", time.monotonic() + 60)
    os.close(writing)


def test_frames_carry_requests_and_answers_of_helpers(pipe: Channel) -> None:
    target = DatabaseTarget(
        "shop", "postgresql://ada:s%40@h:1/x?sslmode=disable&host=a&host=b", hidden_columns=("a.b",)
    )
    pipe.send(messages.target_to_json(target))
    there = messages.target_from_json(pipe.receive(10_000))
    assert there.hidden_columns == ("a.b",)
    assert there.parts is not None
    assert (there.parts.password, there.parts.query["host"]) == ("s@", ("a", "b"))
    assert "s@" not in repr(there)
    result = QueryResult(("a", "b"), [(None, 1), ("x", True)], truncated=True, notes=("cut",))
    changes = Changes([TableChanges("t", ("a",), 1, 0, 0, [], [(1.5,)], "note")], result)
    pipe.send(messages.changes_to_json(changes))
    assert messages.changes_from_json(pipe.receive(10_000)) == changes


def test_a_parameter_that_cannot_be_sent_is_refused(sqlite_shop: DatabaseTarget) -> None:
    with pytest.raises(QueryFailed, match="type object cannot be a parameter"):
        ask(sqlite_shop, "SELECT :x", {"x": object()})
    assert ask(sqlite_shop, "SELECT :x", {"x": b"\x07"}).values == [("\\x07",)]
