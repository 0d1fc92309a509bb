"""A run can be cancelled at each of its steps: the run ends, and no thread or process remains."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction

from agents.engine.errors import StopReason
from agents.ids import run_marker
from agents.models import Run
from agents.sdk.environment.process import engine
from agents.sdk.environment.threads import begin_in_thread
from agents.services.runs.control import cancel_run
from sandbox.reaper import kill_marked
from tests.agents.sdk.conftest import MakeAgent, remaining_threads
from tests.support.hang import HANG
from tests.support.runs import wait_until
from tests.support.steps import Steps
from vel import DeepAgent, RunCancelled, RunInterrupted, create_deep_agent, scripted_model

FILES = [("write_file", {"path": f"{name}.txt", "content": "one\n" * 50}) for name in "abc"]
READS = [
    ("read_file", {"path": "a.txt"}),
    ("grep", {"pattern": "one"}),
    ("glob", {"pattern": "*"}),
    ("edit_file", {"path": "b.txt", "old_text": "one", "new_text": "two", "replace_all": True}),
]
COMMAND = [("execute", {"command": "cat *.txt"})]
TWO = [FILES[0], READS[1]]
"""Two parallel calls: more calls would only repeat the same steps."""


Limits = list[tuple[asyncio.Timeout, "asyncio.Task[Any] | None"]]


@dataclass(frozen=True)
class Case:
    """Cancel at the step `at` of the program's task or of the engine's tasks, and once more."""

    at: int
    place: str
    again: int | None = None
    """After this number of further engine steps the time limit of each call has passed."""
    sandbox: bool = False
    long: bool = False
    """Seven calls in two turns instead of two in one, before the command in a sandbox."""


class Cancelling:
    """One run that is cancelled, and the next one of its session."""

    def __init__(self, case: Case, limits: Limits) -> None:
        self.case, self.limits = case, limits
        self.session = uuid.uuid4().hex
        self.steps = 0
        turns = [{"tool_calls": calls} for calls in ([FILES, READS] if case.long else [TWO])]
        turns += [{"tool_calls": COMMAND}] if case.sandbox else []
        self.agent: DeepAgent = create_deep_agent(
            model=scripted_model([*turns, "Done."], f"cancelled-{case.sandbox}-{case.long}"),
            sandbox=case.sandbox,
            sandbox_working_dir=None,
            include_builtin_skills=False,
        )

    async def check(self) -> None:
        before = set(threading.enumerate())
        await self._cancelled_run()
        async with asyncio.timeout(HANG):
            await self.agent.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        await asyncio.to_thread(self._check_rows, before)
        async with asyncio.timeout(HANG):
            assert await self.agent.run("Again", self.session) == "Done."
            await self.agent.aclose()

    async def _cancelled_run(self) -> None:
        self._loop = asyncio.get_running_loop()
        token = object()
        await asyncio.to_thread(engine.join, token)
        work = self.agent.run("Go", self.session)
        if self.case.place == "program":
            steps = Steps(self.case.at, lambda: self._task.cancel())
            self._task = self._loop.create_task(steps.run(work))
        else:
            steps = Steps(self.case.at, self._cancel_in_engine)
            self._worker = engine.worker
            self._worker._loop.call_soon_threadsafe(steps.watch, self._worker._loop)
            self._steps = steps
            self._task = self._loop.create_task(work)
        with suppress(asyncio.CancelledError, RunCancelled):
            async with asyncio.timeout(HANG):
                await self._task
        self.steps = steps.count
        engine.discard(token)

    def _cancel_in_engine(self) -> None:
        """Cancel on the engine's loop, as the heartbeat does for a cancelled run."""
        for run_id, handle in list(self._worker._handles.items()):
            begin_in_thread(_store_cancel, run_id).result(HANG)
            handle.stop(StopReason.CANCEL)
        self._loop.call_soon_threadsafe(self._task.cancel)
        if self.case.again is not None:
            self._steps.later(self.case.again, self._end_limits)

    def _end_limits(self) -> None:
        calls = self._steps.tasks("_run_one")
        for limit, task in self.limits:
            if task in calls and not task.done():
                with suppress(RuntimeError):  # the context was closed
                    limit.reschedule(0)

    def _check_rows(self, before: set[threading.Thread]) -> None:
        wait_until(lambda: not remaining_threads(before), f"the end of the threads, {self.case}")
        for run in Run.objects.filter(thread__key=self.session):
            assert run.status in ("cancelled", "completed"), (self.case, run.status)
            if self.case.sandbox:
                assert kill_marked([run_marker(run.pk)]) == 0, self.case


def _store_cancel(run_id: str) -> None:
    with transaction.atomic():
        cancel_run(run_id, by="a test")


Play = Callable[[list[Case]], list[int]]


@pytest.fixture
def play(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Play:
    """Play cases and return the number of steps of each."""
    limits: Limits = []
    usual = asyncio.timeout

    def timeout(delay: float | None) -> asyncio.Timeout:
        limit = usual(delay)
        limits.append((limit, asyncio.current_task()))
        return limit

    monkeypatch.setattr(asyncio, "timeout", timeout)

    async def all_of_them(cases: list[Case]) -> list[int]:
        found = []
        for case in cases:
            limits.clear()
            one = Cancelling(case, limits)
            await one.check()
            found.append(one.steps)
            gc.collect(0)  # exceptions that were never retrieved are logged on collection
            errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
            assert errors == [], case
            caplog.clear()
        return found

    return lambda cases: asyncio.run(all_of_them(cases))


NEVER = 10**9
PLACES = ("program", "engine")


def counted(play: Play, place: str, *, sandbox: bool, long: bool = False) -> int:
    """Return the number of steps of a run without a cancellation."""
    [steps] = play([Case(NEVER, place, sandbox=sandbox, long=long)])
    return steps


some_steps = pytest.mark.parametrize(
    "part", [pytest.param(3, id="test"), pytest.param(1, marks=pytest.mark.storm, id="storm")]
)
"""Cancel at every third step in `make test`, and at each step in `make storm`."""


@pytest.mark.slow
@some_steps
@pytest.mark.bubblewrap
@pytest.mark.parametrize("sandbox", [False, True])
def test_a_run_can_be_cancelled_at_each_step(play: Play, *, sandbox: bool, part: int) -> None:
    """The calls are cancelled once more a few steps later."""
    first = 2 if sandbox and part > 1 else 1  # other steps than without a sandbox
    for place in PLACES:
        steps = range(first, counted(play, place, sandbox=sandbox) + 1, part)
        play([Case(at, place, again=1 + at % 5, sandbox=sandbox) for at in steps])


@some_steps
def test_a_resumed_run_can_be_cancelled_at_each_step(make_agent: MakeAgent, part: int) -> None:
    turns = [{"tool_calls": FILES[:1]}, "Done."]
    agent = make_agent(turns, interrupt_on={"write_file": True})

    async def go_on(session: str) -> None:
        async for _ in agent.resume(session, True):
            pass

    async def cancelled_at(step: int) -> bool:
        """Cancel at this step; return whether the step exists."""
        session = f"session-{step}"
        with pytest.raises(RunInterrupted):
            await agent.run("Go", session)
        steps = Steps(step, lambda: task.cancel())
        task = asyncio.create_task(steps.run(go_on(session)))
        with suppress(asyncio.CancelledError, RunCancelled):
            await task
        await agent.aclose()
        run = await Run.objects.aget(thread__key=session)
        if run.status == "waiting":  # no request was decided
            await go_on(session)
            await agent.aclose()
            await run.arefresh_from_db()
        assert run.status in ("cancelled", "completed"), (step, run.status)
        return steps.count >= step

    async def all_of_them() -> None:
        step = 1
        while await cancelled_at(step):
            step += part
        assert step > 5

    asyncio.run(all_of_them())


@pytest.mark.storm
@pytest.mark.bubblewrap
@pytest.mark.timeout(4 * 3600)
def test_many_cancels(play: Play) -> None:
    """`VEL_TEST_CANCELS` is their number: a thousand take about ten minutes."""
    number = int(os.environ.get("VEL_TEST_CANCELS", "1000"))
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    most = {
        (place, sandbox): counted(play, place, sandbox=sandbox, long=True)
        for place in PLACES
        for sandbox in (False, True)
    }
    cases = []
    for _ in range(number):
        place, sandbox = chance.choices(list(most), weights=(1, 1, 12, 12))[0]
        again = chance.choice([None, *range(1, 20)])
        at = chance.randint(1, most[place, sandbox])
        cases.append(Case(at, place, again, sandbox, long=True))
    play(cases)
