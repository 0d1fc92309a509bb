"""A statement is stopped when its time is over, and the next one on its connection is not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from agents.features.databases.drivers import stopping
from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.target import DatabaseTarget
from sandbox.cancellation import Cancellation
from tests.support.hang import HANG

TARGET = DatabaseTarget("shop", "postgresql://nobody@localhost/shop")


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> list[Callable[..., Any]]:
    """The functions of started timers, which the tests call. To cancel a timer is too late then."""
    begun: list[Callable[..., Any]] = []
    monkeypatch.setattr(threading.Timer, "start", lambda timer: begun.append(timer.function))
    return begun


def test_a_timer_that_comes_with_the_end_stops_nothing_more(
    timers: list[Callable[..., Any]],
) -> None:
    asked: list[str] = []
    with stopping.ended_in_time(
        TARGET, Cancellation(), lambda: asked.append("ask"), lambda: asked.append("cut")
    ):
        pass
    timers[0]()
    assert asked == []


@pytest.mark.parametrize("problem", [None, ConnectionError("closed")])
def test_a_timer_that_comes_before_the_end_is_a_timeout(
    timers: list[Callable[..., Any]], problem: Exception | None
) -> None:
    asked = threading.Event()
    late = threading.Thread(target=lambda: timers[0]())

    def statement() -> None:
        with stopping.ended_in_time(TARGET, Cancellation(), asked.set, lambda: None):
            late.start()
            assert asked.wait(HANG)
            if problem is not None:
                raise problem

    with pytest.raises(QueryFailed) as failed:
        statement()
    assert failed.value.code == "timeout"
    late.join(HANG)
