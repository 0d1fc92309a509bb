"""Queues and events of processes that are killed while they use them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tests.support.hang import HANG
from tests.support.runs import wait_until
from velproject.cluster import Results
from velproject.mortal import Event, Queue, TooLarge

FORK = get_context("fork")


@contextmanager
def process(function: Callable[..., object], *arguments: Any) -> Iterator[int]:
    """Fork a process, and kill it at the end."""
    started = FORK.Process(target=function, args=arguments)
    started.start()
    assert started.pid is not None
    try:
        yield started.pid
    finally:
        started.kill()
        started.join()


def sleeps(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def put_again_and_again(queue: Queue) -> None:
    while True:
        queue.put("more")


def pass_on(queue: Queue, answers: Queue) -> None:
    answers.put(queue.get())


def say_when_set(event: Event, answers: Queue) -> None:
    answers.put(event.wait(HANG))


def test_messages_come_whole_and_in_order() -> None:
    queue = Queue()
    assert queue.empty()
    messages = ["first", {"name": "second", "args": ("x" * 100_000,)}, "STOP"]
    for message in messages:
        queue.put(message)
    assert queue.qsize() == 1
    assert [queue.get() for _ in messages] == messages
    assert queue.empty()


def test_a_receiver_that_is_killed_takes_nothing_along() -> None:
    """With `multiprocessing.Queue`, a waiting receiver holds the lock of all receivers."""
    queue, answers = Queue(), Queue()
    with process(pass_on, queue, answers) as pid:
        wait_until(lambda: sleeps(pid), "a process that waits for a message")
    with process(pass_on, queue, answers):
        queue.put("a task")
        assert answers.get() == "a task"


def test_a_sender_that_is_killed_leaves_whole_messages() -> None:
    queue = Queue()
    with process(put_again_and_again, queue) as pid:
        wait_until(lambda: not queue.empty() and sleeps(pid), "a process that waits for room")
    taken = 0
    while not queue.empty():
        assert queue.get() == "more"
        taken += 1
    assert taken > 1
    queue.put("after it")
    assert queue.get() == "after it"


def test_an_event_is_seen_by_all_and_survives_its_waiters() -> None:
    event, answers = Event(), Queue()
    assert not event.is_set()
    assert not event.wait(0.01)
    with process(say_when_set, event, answers) as pid:
        wait_until(lambda: sleeps(pid), "a process that waits for the event")
        os.kill(pid, signal.SIGKILL)
    with process(say_when_set, event, answers), process(say_when_set, event, answers):
        event.set()
        event.set()
        assert [answers.get(), answers.get()] == [True, True]
    assert event.is_set()


def test_a_message_that_is_too_large_is_refused() -> None:
    queue = Queue()
    with pytest.raises(TooLarge, match="bytes is too large"):
        queue.put("x" * 10_000_000)
    assert queue.empty()


def test_a_result_that_is_too_large_is_reported_without_its_contents() -> None:
    results = Results()
    results.put({"name": "report", "result": "x" * 10_000_000, "args": (1,), "kwargs": {}})
    got = results.get()
    assert got["name"] == "report"
    assert "is too large" in got["result"]
