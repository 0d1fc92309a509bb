"""The supervisor with children that the tests define."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import signal
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.runs import wait_until
from velproject import up
from velproject.stalled import Due, StallWatch
from velproject.up import FIRST_PAUSE, Child, Supervisor, describe_exit, listen

ASLEEP = "import time; time.sleep(600)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + ASLEEP
NEWS_FD = "import sys; news_fd = int(sys.argv[sys.argv.index('--news-fd') + 1]); "
WORKS_AND_DIES = NEWS_FD + "import os; os.write(news_fd, b'1'); raise SystemExit(3)"
LEAVES_A_PROCESS = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    for fd in (1, 2):
        os.dup2(0, fd)
    while os.path.exists(sys.argv[1]):
        time.sleep(0.05)
raise SystemExit(3)
"""
DEAF_WITH_A_PROCESS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    open(sys.argv[1], "x").close()
time.sleep(600)
"""
SAYS_WHO_IS_DEAD = (
    "import sys; print('dead', *sys.argv[sys.argv.index('--dead') + 1:], flush=True); sys.exit(3)"
)
DEADLINE = 60.0


def child(program: str) -> Child:
    return Child("test", ["-c", program], keep_fds=())


async def until(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not look():  # noqa: ASYNC110 - what it looks at is another process's
            await asyncio.sleep(0.01)


async def lives_of(one: Child, wanted: int) -> list[int]:
    """Return the PIDs of the next `wanted` processes of a child."""
    pids: list[int] = []

    def another() -> bool:
        if one.process is not None and one.process.pid not in pids:
            pids.append(one.process.pid)
        return len(pids) == wanted

    await until(another)
    return pids


def supervise(
    one: Child,
    story: Callable[[], Awaitable[None]],
    *,
    grace: float = 5.0,
    read_due: Callable[[], Due] = frozenset,
    **options: Any,
) -> None:
    """Run a supervisor of `one` during `story`, then stop it by a signal."""

    async def main() -> None:
        supervisor = Supervisor([one], grace=grace, read_due=read_due, **options)
        running = asyncio.create_task(supervisor.run())
        try:
            await story()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            await running

    asyncio.run(main())


@pytest.mark.slow
def test_a_child_that_keeps_dying_is_started_with_longer_and_longer_pauses() -> None:
    one = child("raise SystemExit(3)")

    async def story() -> None:
        await lives_of(one, 2)
        earlier = one.pause
        await lives_of(one, 2)
        assert one.pause > earlier

    supervise(one, story)


def test_a_child_that_worked_before_it_died_is_started_again_soon() -> None:
    one = child(WORKS_AND_DIES)

    async def story() -> None:
        await lives_of(one, 4)
        assert one.pause <= 2 * FIRST_PAUSE

    supervise(one, story)


@pytest.mark.slow
def test_a_process_learns_which_earlier_ones_are_dead(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = child(SAYS_WHO_IS_DEAD)

    async def story() -> None:
        await lives_of(one, 4)

    supervise(one, story)
    said = re.findall(r"test    \| dead ?(.*)\n", capsys.readouterr().out)
    first, second, *_ = one.dead
    assert said[:3] == ["", first, f"{first} {second}"]


def test_the_end_of_a_life_is_settled_while_the_next_one_starts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    settled: list[str] = []

    def settle(life: str) -> int:
        settled.append(life)
        if len(settled) == 1:
            raise OSError("no database")
        return 2

    one = Child("test", ["-c", "raise SystemExit(3)"], keep_fds=(), on_death=settle)

    async def story() -> None:
        await until(lambda: len(settled) == 3)
        assert list(one.dead)[:3] == settled

    supervise(one, story)
    said = capsys.readouterr().out
    assert "cannot end the leases of dead test: no database" in said
    assert "ended 2 leases of dead test" in said


def test_a_process_group_is_not_dead_while_a_process_lives(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(up, "DEATH_SECONDS", 0.1)
    stays = tmp_path / "stays"
    stays.touch()
    one = Child("test", ["-c", LEAVES_A_PROCESS, str(stays)], keep_fds=())

    async def story() -> None:
        await lives_of(one, 2)
        assert list(one.dead) == []

    try:
        supervise(one, story)
    finally:
        stays.unlink()
        wait_until(lambda: not started_with(str(stays)), "the end of all processes")
    assert "a process of test cannot be killed" in capsys.readouterr().out


def started_with(word: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def test_workers_that_take_no_work_are_restarted_even_if_they_are_deaf(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = child(DEAF)

    async def story() -> None:
        first, second = await lives_of(one, 2)
        assert first != second
        assert not Path(f"/proc/{first}").exists()
        assert one.pause <= 2 * FIRST_PAUSE

    supervise(
        one,
        story,
        grace=0.2,
        read_due=lambda: frozenset({("task", "1")}),
        restart_on_stall=one,
        watch=StallWatch(patience=0.1),
        look_seconds=0.05,
    )
    assert "no worker takes 1 due tasks and runs" in capsys.readouterr().out


def test_after_a_second_signal_it_does_not_wait(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ready = tmp_path / "ready"
    one = Child("test", ["-c", DEAF_WITH_A_PROCESS, str(ready)], keep_fds=())
    said: list[str] = []

    def is_stopping() -> bool:
        said.append(capsys.readouterr().out)
        return "stopping; runs have 60 s" in "".join(said)

    async def story() -> None:
        await until(ready.exists)
        os.kill(os.getpid(), signal.SIGINT)
        await until(is_stopping)  # then `supervise` sends the second one

    supervise(one, story, grace=DEADLINE)
    assert capsys.readouterr().out.endswith("| stopped\n")
    wait_until(lambda: not started_with(str(ready)), "the end of all processes")


def test_a_database_that_is_away_does_not_end_the_supervisor(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = child(ASLEEP)
    looks: list[None] = []

    def fails() -> Due:
        looks.append(None)
        raise OSError("no database")

    supervise(
        one,
        lambda: until(lambda: len(looks) == 3),
        read_due=fails,
        restart_on_stall=one,
        look_seconds=0.01,
    )
    assert "cannot look for due work: no database" in capsys.readouterr().out


def test_lines_of_children_cannot_write_to_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = child(rf"print('x' * 200_000); print('a\x1b[2Jb', flush=True); {ASLEEP}")
    said: list[str] = []

    def has_said_it() -> bool:
        said.append(capsys.readouterr().out)
        return "a\\x1b[2Jb" in "".join(said)

    supervise(one, lambda: until(has_said_it))
    assert "test    | a\\x1b[2Jb\n" in "".join(said)
    assert "\x1b" not in "".join(said)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_it_restores_the_handlers_of_signals(number: int) -> None:
    one = child(ASLEEP)
    earlier = signal.signal(number, signal.SIG_IGN)  # nohup and shells do the same
    try:
        supervise(one, lambda: until(lambda: one.process is not None))
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, earlier)


def test_a_database_that_never_answers_does_not_delay_the_end() -> None:
    """A waiting thread cannot be cancelled, so the supervisor must not wait for it."""
    answer = threading.Event()
    asked: list[str] = []

    def never(life: str = "") -> Any:
        asked.append(life)
        answer.wait()

    one = Child("test", ["-c", "raise SystemExit(3)"], keep_fds=(), on_death=never)
    try:
        supervise(
            one,
            lambda: until(lambda: "" in asked and len(asked) > 1),
            read_due=never,
            restart_on_stall=one,
            look_seconds=0.01,
        )
    finally:
        answer.set()


def test_a_taken_port_is_a_separate_error() -> None:
    with listen("127.0.0.1", 0) as first, pytest.raises(OSError, match="in use") as caught:
        listen("127.0.0.1", first.getsockname()[1])
    assert caught.value.errno == errno.EADDRINUSE


def test_exits_are_reported_in_words() -> None:
    assert describe_exit(3) == "exit code 3"
    assert describe_exit(-9) == "killed by SIGKILL"
