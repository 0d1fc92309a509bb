"""`vel up` with its real children: it serves, restarts what dies, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from tests.velproject.command import DEADLINE, Vel

T = TypeVar("T")


START_RUN = """
import django, sys
django.setup()
from agents.ids import new_id
from agents.models import Agent
from agents.services.agents import save_agent
from agents.services.runs import RunRequest, create_run
from velproject.cli.actions.local_user import local_user
owner = local_user()
slug = new_id()
save_agent(Agent(name="Test", slug=slug, owner=owner, provider="scripted", model=sys.argv[1]))
print(create_run(RunRequest(agent=slug, message="go"), owner=owner).run.id)
"""


class Up:
    """A running `vel up` and all that it has said."""

    def __init__(self, vel: Vel, *arguments: str) -> None:
        self.vel = vel
        self.process = vel.start(
            *("up", "--port", "0", "--workers", "1", *arguments), VEL_SCRIPTS_DIR=str(vel.data)
        )
        self.said = ""
        self._more = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.port = int(self.expect(r"http://127\.0\.0\.1:(\d+)/"))

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._more:
                self.said += line
                self._more.notify_all()

    def expect(self, pattern: str, after: int = 0) -> str:
        """Wait for a line; its first group, or the whole match."""
        with self._more:
            found = self._more.wait_for(
                lambda: re.search(pattern, self.said[after:]), timeout=DEADLINE
            )
        assert found, f"{pattern!r} was not said:\n{self.said}"
        return found.group(found.re.groups)

    def page(self, path: str) -> int:
        """The status of a page; connections wait while web starts, so no trying again."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}{path}", timeout=DEADLINE
            ) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def main_of(self, role: str) -> int:
        """The pid of the child's main process: the leader of its session."""
        return until(
            lambda: next(
                (
                    pid
                    for pid, command in processes_of(self.vel).items()
                    if f"velproject.child {role}" in command and os.getsid(pid) == pid
                ),
                0,
            )
        )

    def end(self) -> None:
        """Whatever the test did, nothing stays."""
        for pid in processes_of(self.vel):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        print(self.said)  # shown by pytest where the test fails


@contextmanager
def running(vel: Vel, *arguments: str) -> Iterator[Up]:
    up = Up(vel, *arguments)
    try:
        yield up
    finally:
        up.end()


def processes_of(vel: Vel) -> dict[int, str]:
    """All processes that were started for this data directory: pid and command line."""
    mark = f"VEL_DATA_DIR={vel.data}\0".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes():
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if command:  # a zombie has none
                    found[int(entry.name)] = command
    return found


def until(look: Callable[[], T]) -> T:
    """Look until there is something to see."""
    end = time.monotonic() + DEADLINE
    while not (seen := look()):
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)
    return seen


def wait_for_workers(vel: Vel) -> None:
    # Without workers it says "none took a test task within 3 s".
    until(lambda: "took a test task in " in vel("doctor").stdout)


def test_it_serves_pages_and_drives_runs_and_ends_cleanly(vel: Vel) -> None:
    with running(vel) as up:
        assert up.page("/login/") == 200
        assert "no administrator yet" in up.said
        run_id = start_run(vel, "echo")
        until(lambda: status_of(vel, run_id) == "completed")
        up.process.send_signal(signal.SIGTERM)
        assert up.process.wait(DEADLINE) == 0
        assert processes_of(vel) == {}
        assert "vel     | stopped" in up.said


def test_the_demo_agent_is_there_for_everybody(vel: Vel) -> None:
    with running(vel) as up:
        up.page("/login/")
    assert vel.count("agents_agent WHERE slug = 'demo' AND everyone") == 1


def test_a_second_one_on_the_same_port_is_told_so(vel: Vel) -> None:
    with running(vel) as up:
        second = vel("up", "--port", str(up.port))
        assert second.returncode == 1
        (line,) = second.stderr.splitlines()
        assert f"port {up.port} of 127.0.0.1 is in use" in line


@pytest.mark.parametrize("role", ["web", "workers"])
def test_a_child_that_is_killed_is_started_again(vel: Vel, role: str) -> None:
    with running(vel) as up:
        first = up.main_of(role)
        os.kill(first, signal.SIGKILL)
        up.expect(rf"{role} ended \(killed by SIGKILL\); starting it again")
        assert until(lambda: (pid := up.main_of(role)) != first and pid)
        if role == "web":
            assert up.page("/login/") == 200
        else:
            wait_for_workers(vel)
            assert not [pid for pid in processes_of(vel) if os.getsid(pid) == first]


def test_a_cluster_whose_guard_is_killed_is_started_again(vel: Vel) -> None:
    with running(vel) as up:
        main = up.main_of("workers")
        guard = until(lambda: children_of(main))[0]
        until(lambda: children_of(guard))
        os.kill(guard, signal.SIGKILL)
        up.expect(r"workers ended .* starting it again")
        wait_for_workers(vel)


def test_runs_are_driven_after_every_worker_was_killed_while_it_waited(vel: Vel) -> None:
    with running(vel) as up:
        wait_for_workers(vel)
        main = up.main_of("workers")
        guard = until(lambda: children_of(main))[0]
        for pid in children_of(guard):
            os.kill(pid, signal.SIGKILL)
        run_id = start_run(vel, "echo")
        until(lambda: status_of(vel, run_id) == "completed")


def test_nothing_outlives_a_supervisor_that_is_killed(vel: Vel) -> None:
    with running(vel, "--grace", "5") as up:
        up.page("/login/")
        wait_for_workers(vel)
        up.process.kill()
        until(lambda: not processes_of(vel))


def test_nothing_outlives_a_supervisor_that_is_killed_with_its_cluster(vel: Vel) -> None:
    with running(vel, "--grace", "5") as up:
        wait_for_workers(vel)
        main = up.main_of("workers")
        up.process.kill()
        os.kill(main, signal.SIGKILL)
        until(lambda: not processes_of(vel))


def test_a_run_under_way_is_handed_back_when_it_stops(vel: Vel) -> None:
    (vel.data / "slow.json").write_text('{"turns": [{"text": "slow", "delay": 600}]}')
    with running(vel) as up:
        run_id = start_run(vel, f"file:{vel.data / 'slow.json'}")
        until(lambda: status_of(vel, run_id) == "running")
        up.process.send_signal(signal.SIGTERM)
        assert up.process.wait(DEADLINE) == 0
        assert status_of(vel, run_id) == "queued"
        assert processes_of(vel) == {}


def test_a_second_signal_does_not_wait(vel: Vel) -> None:
    (vel.data / "slow.json").write_text('{"turns": [{"text": "slow", "delay": 600}]}')
    with running(vel, "--grace", "3600") as up:
        run_id = start_run(vel, f"file:{vel.data / 'slow.json'}")
        until(lambda: status_of(vel, run_id) == "running")
        os.kill(up.main_of("workers"), signal.SIGSTOP)  # it will never stop by itself
        up.process.send_signal(signal.SIGINT)
        up.expect("stopping; runs get 3600 s")
        up.process.send_signal(signal.SIGINT)
        assert up.process.wait(DEADLINE) == 0
        assert processes_of(vel) == {}


def start_run(vel: Vel, model: str) -> str:
    """A run for the workers, started by a process of its own. Returns its id."""
    done = subprocess.run(
        [vel.command()[0], "-P", "-c", START_RUN, model],
        capture_output=True,
        text=True,
        env=vel.env(DJANGO_SETTINGS_MODULE="velproject.settings"),
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def status_of(vel: Vel, run_id: str) -> str:
    return str(vel.value(f"SELECT status FROM agents_run WHERE id = '{run_id}'"))


def children_of(parent: int) -> list[int]:
    path = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(pid) for pid in path.read_text().split()]
