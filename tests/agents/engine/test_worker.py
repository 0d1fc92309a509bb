"""A worker process and its runs."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from agents.engine.process import sweeper
from agents.engine.storage.journal import Writer
from agents.events.catalogue.messages import TextDelta
from agents.models import POOL, RunClock
from tests.support.hang import HANG
from tests.support.runs import (
    make_agent,
    make_user,
    running_worker,
    script_file,
    start_run,
    wait_for_status,
    wait_until,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.slow
@pytest.mark.both_databases
def test_a_full_process_takes_the_next_run_as_soon_as_it_has_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sweeper, "QUEUE_SWEEP_SECONDS", 3600)
    user = make_user()
    make_agent(user)
    runs = [start_run(user) for _ in range(4)]
    with running_worker(executor=POOL, capacity=1) as running:
        for run in runs:
            running.submit(run.id)
        for run in runs:
            wait_for_status(run, "completed")


def test_late_text_of_an_earlier_driver_does_not_stop_the_one_that_drives_now(
    tmp_path: Path,
) -> None:
    """The same process may have parked, woken and claimed the run again within a moment."""
    user = make_user()
    make_agent(user, model=script_file(tmp_path, [{"text": "Done.", "delay": 0.5}]))
    run = start_run(user)
    earlier = Writer(run.id, run.thread_id, 0)
    with running_worker() as running:
        running.submit(run.id)
        wait_for_status(run, "running")
        late = TextDelta(part_id="1.0", text="late")
        running._loop.call_soon_threadsafe(lambda: running.deltas(earlier).put(late))
        wait_for_status(run, "completed")
    assert RunClock.objects.get(run=run).fence == 1


def test_a_tool_that_was_given_up_can_use_the_database_while_the_host_stops() -> None:
    """The thread of a tool can outlive its call and run, while the host already closes."""
    begun, answers = threading.Event(), []
    with running_worker() as running:

        def tool() -> None:
            begun.set()
            wait_until(lambda: running._draining, "the end of the host")
            answers.append(running.ask(RunClock.objects.count).result(HANG))

        running.threads.submit(tool)
        assert begun.wait(HANG)
        closing = threading.Thread(target=running.stop, daemon=True)
        closing.start()
        closing.join(HANG)
        assert not closing.is_alive()
    assert answers == [0]
