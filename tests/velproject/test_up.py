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

from tests.support.cluster import freeze, thaw
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
        workers = () if "--no-workers" in arguments else ("--workers", "1")
        self.process = vel.start(
            *("up", "--port", "0", *workers, *arguments), VEL_SCRIPTS_DIR=str(vel.data)
        )
        self.said = ""
        self.killed: set[str] = set()
        """The roles of the processes that `kill` has killed."""
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

    def kill(self, role: str) -> int:
        """Kill web, the main process of the workers, or the guard. Return the PID."""
        mains = {"web": "web", "main": "workers"}
        pid = self.cluster()[0] if role == "guard" else self.main_of(mains[role])
        os.kill(pid, signal.SIGKILL)
        self.killed.add(role)
        return pid

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
    assert seen, "the condition was not reached"
    return seen


@pytest.fixture(scope="module")
def up() -> Iterator[Up]:
    """A `vel up` as people start it. The last test that uses it kills it."""
    with new_vel(VEL_PUBLIC_URL="") as vel, running(vel, "--grace", "5") as up:
        yield up


def drive_a_run(up: Up) -> None:
    """Start a run and wait until the workers have completed it."""
    run_id = start_run(up.vel, "echo")
    until(lambda: status_of(up.vel, run_id) == "completed")


def test_it_serves_pages_and_drives_runs(up: Up) -> None:
    assert up.page("/login/") == 200
    assert "no administrator yet" in up.said
    drive_a_run(up)


@pytest.mark.slow
def test_the_doctor_sees_the_workers(up: Up) -> None:
    drive_a_run(up)
    assert "took a test task in " in up.vel("doctor").stdout


def test_the_demo_agent_is_there_for_everybody(up: Up) -> None:
    assert up.vel.count("agents_agent WHERE slug = 'demo' AND everyone") == 1


@pytest.mark.slow
def test_a_second_server_on_the_same_port_gets_a_message(up: Up) -> None:
    second = up.vel("up", "--port", str(up.port))
    assert second.returncode == 1
    (line,) = second.stderr.splitlines()
    assert f"Port {up.port} of 127.0.0.1 is in use" in line


@pytest.mark.slow
def test_without_workers_only_the_web_server_runs() -> None:
    with new_vel() as vel, running(vel, "--no-workers") as up:
        assert up.page("/healthz") == 200
        children = children_of(up.process.pid)
        assert children == [up.main_of("web")]
        up.process.terminate()
        assert up.process.wait(DEADLINE) == 0


def test_a_number_of_workers_and_no_workers_are_refused_together() -> None:
    with new_vel() as vel:
        refused = vel("up", "--workers", "2", "--no-workers")
    assert refused.returncode != 0
    assert "--workers and --no-workers exclude each other" in refused.stderr


@pytest.mark.parametrize("role", ["web", "workers"])
def test_web_and_workers_know_where_it_listens(up: Up, role: str) -> None:
    """The setting is empty, which is like none; `test_up_address` has other hosts."""
    assert public_url_of(up.main_of(role)) == f"http://127.0.0.1:{up.port}"


def test_nothing_outlives_a_supervisor_that_is_killed(up: Up) -> None:
    """`tests.chaos.test_locked_guard` also kills the main process of the workers."""
    up.page("/login/")
    up.cluster()
    up.process.kill()
    until(lambda: not processes_of(up.vel))


@pytest.fixture(scope="module")
def patient() -> Iterator[Up]:
    """A `vel up` with leases and a grace period of an hour. The last test that uses it stops it."""
    settings = {
        "DJANGO_SETTINGS_MODULE": "tests.velproject.impatient",
        "VEL_TEST_LEASE": "3600",
        "VEL_PUBLIC_URL": "https://vel.example.org",
    }
    with new_vel(**settings) as vel, running(vel, "--grace", "3600") as up:
        yield up


@pytest.mark.slow
@pytest.mark.parametrize("role", ["web", "workers"])
def test_an_address_in_the_settings_stays(patient: Up, role: str) -> None:
    assert public_url_of(patient.main_of(role)) == "https://vel.example.org"


@pytest.mark.slow
def test_web_is_started_again_when_it_is_killed(patient: Up) -> None:
    said = len(patient.said)
    first = patient.kill("web")
    patient.expect(r"web ended \(killed by SIGKILL\); starting it again", said)
    assert until(lambda: (pid := patient.main_of("web")) != first and pid)
    assert patient.page("/login/") == 200


@pytest.mark.slow
def test_a_run_does_not_wait_for_the_lease_of_a_worker_that_was_killed(patient: Up) -> None:
    run_id = start_slow_run(patient.vel)
    os.kill(worker_of(patient), signal.SIGKILL)
    until(lambda: claims_of(patient.vel, run_id) == 2)
    cancel(patient.vel, run_id)


@pytest.mark.slow
def test_runs_are_driven_after_every_worker_was_killed_while_it_waited(patient: Up) -> None:
    drive_a_run(patient)
    _, *others = patient.cluster()
    for pid in others:
        os.kill(pid, signal.SIGKILL)
    drive_a_run(patient)


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["guard", "main"])
def test_runs_of_a_dead_cluster_do_not_wait_for_their_leases(patient: Up, killed: str) -> None:
    """One run is cancelled before another worker starts. The next worker takes the other one."""
    vel = patient.vel
    cancelled, taken = start_slow_run(vel), start_slow_run(vel)
    main, said = patient.main_of("workers"), len(patient.said)
    patient.kill(killed)
    patient.expect(r"workers ended .* starting it again", said)
    assert not [pid for pid in processes_of(vel) if session_of(pid) == main]
    successor = until(lambda: (pid := patient.main_of("workers")) != main and pid)
    freeze(successor)
    try:
        assert children_of(successor) == []
        cancel(vel, cancelled)
    finally:
        thaw(successor)
    until(lambda: claims_of(vel, taken) == 2)
    cancel(vel, taken)


@pytest.mark.slow
def test_it_hands_a_run_back_and_stops_after_any_kill(patient: Up) -> None:
    for role in {"web", "main", "guard"} - patient.killed:
        replace(patient, patient.kill(role))
    _, *helpers = patient.cluster()  # worker, pusher and monitor
    for pid in helpers:
        os.kill(pid, signal.SIGKILL)
        replace(patient, pid)
    patient.page("/login/")
    run_id = start_slow_run(patient.vel)
    patient.process.send_signal(signal.SIGTERM)
    assert patient.process.wait(DEADLINE) == 0
    patient.expect(r"vel     \| stopped\n")
    assert status_of(patient.vel, run_id) == "queued"
    assert processes_of(patient.vel) == {}


def replace(up: Up, pid: int) -> None:
    """Wait until another process replaces one that was killed."""
    until(lambda: pid not in {up.main_of("web"), up.main_of("workers"), *up.cluster()})


def worker_of(up: Up) -> int:
    """Wait until the worker of the cluster has reported itself. Return its PID."""
    workers = "SELECT pid FROM agents_serverprocess WHERE kind = 'worker'"

    def find() -> int:
        reported = {row["pid"] for row in up.vel.stored(workers)}
        return max(reported.intersection(up.cluster()), default=0)

    return until(find)


def claims_of(vel: Vel, run_id: str) -> object:
    """Return how many drivers have claimed a run."""
    return vel.value(f"SELECT fence FROM agents_runclock WHERE run_id = '{run_id}'")


def cancel(vel: Vel, run_id: str) -> None:
    assert vel("runs", "cancel", run_id).returncode == 0
    until(lambda: status_of(vel, run_id) == "cancelled")


def session_of(pid: int) -> int:
    """Return the session of a process, or 0 if it has ended."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


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
