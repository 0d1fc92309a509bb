"""`vel up` with its real children: it serves, restarts dead children, and leaves none behind."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from tests.support.cluster import freeze
from tests.support.hang import poll
from tests.velproject.command import DEADLINE, Vel, new_vel
from tests.velproject.starting import starting_runs

T = TypeVar("T")


WORKERS_AND_THEIR_HELPERS = 3
"""The processes below the guard of a cluster of one worker: worker, pusher and monitor."""


class Up:
    """A running `vel up` and all of its output."""

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
        """Wait for a line. Return its first group, or the whole match."""
        with self._more:
            found = self._more.wait_for(
                lambda: re.search(pattern, self.said[after:]), timeout=DEADLINE
            )
        assert found, f"{pattern!r} was not said:\n{self.said}"
        return found.group(found.re.groups)

    def page(self, path: str) -> int:
        """Return the status of a page. Requests wait while web starts."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}{path}", timeout=DEADLINE
            ) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def main_of(self, role: str) -> int:
        """Wait for the child with this role and return its PID."""

        def find() -> int:
            for pid in children_of(self.process.pid):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                    if role in command and "velproject.child" in command:
                        return pid
            return 0

        return until(find)

    def cluster(self) -> list[int]:
        """Wait until the cluster is complete. Return its guard and the processes of the guard."""

        def find() -> list[int]:
            for guard in children_of(self.main_of("workers")):
                if len(found := children_of(guard)) >= WORKERS_AND_THEIR_HELPERS:
                    return [guard, *found]
            return []

        return until(find)

    def end(self) -> None:
        """End all processes, even if the test failed."""
        for pid in processes_of(self.vel):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        print(self.said)  # pytest shows it if the test fails


@contextmanager
def running(vel: Vel, *arguments: str) -> Iterator[Up]:
    up = Up(vel, *arguments)
    try:
        yield up
    finally:
        up.end()


@contextmanager
def driving_a_slow_run(vel: Vel, *arguments: str) -> Iterator[tuple[Up, str]]:
    """Yield a `vel up` that drives a run whose model takes ten minutes, and the run's ID."""
    with running(vel, *arguments) as up:
        yield up, start_slow_run(vel)


def start_slow_run(vel: Vel) -> str:
    """Start a run whose model takes ten minutes, and wait until it runs."""
    script = vel.data / "slow.json"
    script.write_text('{"turns": [{"text": "slow", "delay": 600}]}')
    run_id = start_run(vel, f"file:{script}")
    until(lambda: status_of(vel, run_id) == "running")
    return run_id


def processes_of(vel: Vel) -> dict[int, str]:
    """Return the PID and the command line of all processes with this data directory."""
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
    """Poll until there is a result."""
    seen = poll(look, DEADLINE)
    assert seen, "it did not come to pass"
    return seen


@pytest.fixture(scope="module")
def up() -> Iterator[Up]:
    """A `vel up` for the tests that do not end it."""
    with new_vel() as vel, running(vel) as up:
        yield up


@pytest.fixture(scope="module")
def drive_a_run(up: Up) -> Iterator[Callable[[], None]]:
    """Start a run and wait until the workers have completed it."""
    with starting_runs(up.vel) as start:

        def drive() -> None:
            run_id = start("echo")
            until(lambda: status_of(up.vel, run_id) == "completed")

        yield drive


def test_it_serves_pages_and_drives_runs(up: Up, drive_a_run: Callable[[], None]) -> None:
    assert up.page("/login/") == 200
    assert "no administrator yet" in up.said
    drive_a_run()


def test_the_doctor_sees_the_workers(up: Up, drive_a_run: Callable[[], None]) -> None:
    drive_a_run()
    assert "took a test task in " in up.vel("doctor").stdout


def test_the_demo_agent_is_there_for_everybody(up: Up) -> None:
    assert up.vel.count("agents_agent WHERE slug = 'demo' AND everyone") == 1


def test_a_second_one_on_the_same_port_is_told_so(up: Up) -> None:
    second = up.vel("up", "--port", str(up.port))
    assert second.returncode == 1
    (line,) = second.stderr.splitlines()
    assert f"port {up.port} of 127.0.0.1 is in use" in line


@pytest.mark.parametrize("role", ["web", "workers"])
def test_web_and_workers_know_where_it_listens(up: Up, role: str) -> None:
    """The settings have no address here; `test_up_address` has the other cases."""
    assert public_url_of(up.main_of(role)) == f"http://127.0.0.1:{up.port}"


@pytest.mark.parametrize("role", ["web", "workers"])
def test_a_child_that_is_killed_is_started_again(
    up: Up, drive_a_run: Callable[[], None], role: str
) -> None:
    up.cluster()
    first, said = up.main_of(role), len(up.said)
    os.kill(first, signal.SIGKILL)
    up.expect(rf"{role} ended \(killed by SIGKILL\); starting it again", said)
    assert until(lambda: (pid := up.main_of(role)) != first and pid)
    if role == "web":
        assert up.page("/login/") == 200
    else:
        drive_a_run()
        assert not [pid for pid in processes_of(up.vel) if os.getsid(pid) == first]


def test_a_cluster_whose_guard_is_killed_is_started_again(
    up: Up, drive_a_run: Callable[[], None]
) -> None:
    guard, *_ = up.cluster()
    said = len(up.said)
    os.kill(guard, signal.SIGKILL)
    up.expect(r"workers ended .* starting it again", said)
    drive_a_run()


def test_runs_are_driven_after_every_worker_was_killed_while_it_waited(
    up: Up, drive_a_run: Callable[[], None]
) -> None:
    drive_a_run()
    _, *others = up.cluster()
    for pid in others:
        os.kill(pid, signal.SIGKILL)
    drive_a_run()


def test_nothing_outlives_a_supervisor_that_is_killed(vel: Vel) -> None:
    with running(vel, "--grace", "5") as up:
        up.page("/login/")
        up.cluster()
        up.process.kill()
        until(lambda: not processes_of(vel))


def test_nothing_outlives_a_supervisor_that_is_killed_with_its_cluster(vel: Vel) -> None:
    with running(vel, "--grace", "5") as up:
        up.cluster()
        main = up.main_of("workers")
        up.process.kill()
        os.kill(main, signal.SIGKILL)
        until(lambda: not processes_of(vel))


def test_a_run_under_way_is_handed_back_when_it_stops(vel: Vel) -> None:
    with driving_a_slow_run(vel) as (up, run_id):
        up.process.send_signal(signal.SIGTERM)
        assert up.process.wait(DEADLINE) == 0
        assert status_of(vel, run_id) == "queued"
        assert processes_of(vel) == {}
        up.expect(r"vel     \| stopped")


def test_it_stops_by_itself_whatever_was_killed_before(vel: Vel) -> None:
    with running(vel, "--grace", "3600") as up:
        up.page("/login/")
        replace(up, up.main_of("web"))
        replace(up, up.main_of("workers"))
        guard, *_ = up.cluster()
        replace(up, guard)
        _, *helpers = up.cluster()  # worker, pusher and monitor
        for killed in helpers:
            replace(up, killed)
        up.page("/login/")
        up.process.send_signal(signal.SIGTERM)
        assert up.process.wait(DEADLINE) == 0
        up.expect(r"vel     \| stopped\n")
        assert processes_of(vel) == {}


def replace(up: Up, pid: int) -> None:
    """Kill a process and wait until another one replaces it."""
    os.kill(pid, signal.SIGKILL)
    until(lambda: pid not in {up.main_of("web"), up.main_of("workers"), *up.cluster()})


@pytest.fixture(scope="module")
def patient() -> Iterator[Up]:
    """A `vel up` with leases of an hour."""
    settings = {"DJANGO_SETTINGS_MODULE": "tests.chaos.settings", "VEL_TEST_LEASE": "3600"}
    with new_vel(**settings) as vel, running(vel) as up:
        yield up


@pytest.mark.parametrize("killed", ["worker", "guard", "main"])
def test_a_run_does_not_wait_for_the_lease_of_workers_that_were_killed(
    patient: Up, killed: str
) -> None:
    vel = patient.vel
    run_id = start_slow_run(vel)
    guard, worker, *_ = patient.cluster()
    os.kill({"worker": worker, "guard": guard}.get(killed) or patient.main_of("workers"), 9)
    until(lambda: vel.value(f"SELECT fence FROM agents_runclock WHERE run_id = '{run_id}'") == 2)
    vel.execute(f"UPDATE agents_runclock SET cancel_requested = 1 WHERE run_id = '{run_id}'")
    until(lambda: status_of(vel, run_id) == "cancelled")


@pytest.mark.parametrize("killed", ["guard", "main"])
def test_a_run_of_a_dead_cluster_is_cancelled_before_another_worker_starts(
    patient: Up, killed: str
) -> None:
    run_id = start_slow_run(patient.vel)
    guard, *_ = patient.cluster()
    main = patient.main_of("workers")
    os.kill(guard if killed == "guard" else main, signal.SIGKILL)
    successor = until(lambda: (pid := patient.main_of("workers")) != main and pid)
    freeze(successor)
    try:
        assert children_of(successor) == []
        assert patient.vel("runs", "cancel", run_id).returncode == 0
        until(lambda: status_of(patient.vel, run_id) == "cancelled")
    finally:
        os.kill(successor, signal.SIGCONT)


def test_a_second_signal_does_not_wait(vel: Vel) -> None:
    with driving_a_slow_run(vel, "--grace", "3600") as (up, _):
        os.kill(up.main_of("workers"), signal.SIGSTOP)  # it never ends without a signal
        up.process.send_signal(signal.SIGINT)
        up.expect("stopping; runs get 3600 s")
        up.process.send_signal(signal.SIGINT)
        assert up.process.wait(DEADLINE) == 0
        assert processes_of(vel) == {}


def start_run(vel: Vel, model: str) -> str:
    with starting_runs(vel) as start:
        return start(model)


def public_url_of(pid: int) -> str:
    """Return `VEL_PUBLIC_URL` in the environment of a process."""
    lines = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(line.split("=", 1) for line in lines if line)["VEL_PUBLIC_URL"]


def status_of(vel: Vel, run_id: str) -> str:
    return str(vel.value(f"SELECT status FROM agents_run WHERE id = '{run_id}'"))


def children_of(parent: int) -> list[int]:
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(pid) for pid in children.split()]
