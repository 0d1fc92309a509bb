"""A test that hangs, dies or fails harms no other test, and leaves nothing behind."""

from __future__ import annotations

import os
import random
import re
import secrets
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from tests.support import process_guard
from tests.support.forked_site import Talking
from tests.support.hang import HANG
from tests.support.isolation import Scheduling
from tests.support.runs import wait_until

ROOT = Path(__file__).resolve().parent.parent
CASES = "tests/support/isolation_cases.py"
OPTIONS = ["-n1", "--dist=loadfile", "-rA", "--ds=tests.support.settings_without_admin"]
FORK_AND_DIE = """
import os, signal, sys, time
from pathlib import Path
from tests.support import process_guard
from tests.support.forked_site import Talking

guard_is_at_work = Path(sys.argv[1])

def wait_for_the_guard():
    while not guard_is_at_work.exists():
        time.sleep(0.01)

os.register_at_fork(after_in_child=wait_for_the_guard)
process_guard.start()
process_guard.run_before(f"touch '{guard_is_at_work}'")
if os.fork() == 0:
    signal.pause()
os.kill(os.getpid(), signal.SIGKILL)
"""
"""The forked process reports itself to the guard only when its parent is dead."""


OUTCOMES = {
    "hangs": "FAILED",
    "after_a_hang": "PASSED",
    "is_killed": "FAILED",
    "after_a_kill": "PASSED",
    "changes_everything_and_fails": "FAILED",
    "after_a_failure": "PASSED",
    "leaves_a_process": "ERROR",
    "leaves_a_process_without_the_token": "ERROR",
    "after_what_was_left": "PASSED",
}


class Inner:
    """A pytest that runs some of the cases."""

    def __init__(self, directory: Path, cases: str) -> None:
        self.ready = directory / "ready"
        self.temporary = directory / "tmp"
        self.temporary.mkdir()
        self.token = secrets.token_hex(8)
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTEST_", "VEL_DATA_", "VEL_TEST_DATA"))
        } | {
            process_guard.VARIABLE: f"{os.environ[process_guard.VARIABLE]}:{self.token}",
            "TMPDIR": str(self.temporary),
            "VEL_TEST_ROOT": str(self.temporary),
            "VEL_TEST_READY": str(self.ready),
            "VEL_TEST_GRACE": "0",
        }
        self.said = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pytest", CASES, "-k", cases, *OPTIONS],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def outcomes(self) -> dict[str, str]:
        """Wait for the end. Returns the outcome of each case, without `test_`."""
        self.said, _ = self.process.communicate(timeout=HANG)
        print(self.said)
        found = re.findall(rf"^(PASSED|FAILED|ERROR) {CASES}::test_(\w+)", self.said, re.MULTILINE)
        return {name: outcome for outcome, name in found}

    def wait_until_nothing_is_left(self) -> None:
        wait_until(lambda: not process_guard.family(self.token), "the end of all processes")
        patterns = ("*", "pytest-of-*/pytest-[0-9]*")
        wait_until(
            lambda: (
                not [
                    path
                    for pattern in patterns
                    for path in self.temporary.glob(pattern)
                    if not path.name.startswith("pytest-of-")
                ]
            ),
            "the removal of all directories",
        )


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "cases", ["hang fail leaves left", pytest.param("kill", marks=pytest.mark.storm)]
)
def test_a_hang_a_death_and_a_failure_harm_no_other_test(tmp_path: Path, cases: str) -> None:
    """For the other tests of a run, a process that is killed is like one that ends after a hang."""
    inner = Inner(tmp_path, f"({' or '.join(cases.split())}) and not waits")
    assert inner.outcomes() == {
        name: outcome
        for name, outcome in OUTCOMES.items()
        if any(case in name for case in cases.split())
    }
    _, report = inner.said.split("crashed while running", 1)
    assert "kill" in cases or "in test_hangs\n" in report, "the report has no stacks"
    wait_until(lambda: not process_guard.family(inner.token), "the end of all processes")


def test_all_tests_with_a_browser_run_in_one_process() -> None:
    unit = Scheduling.__new__(Scheduling)._split_scope
    assert unit("tests/browser/test_a.py::test_a") == unit("tests/browser/test_b.py::test_b[1]")
    assert unit("tests/test_a.py::test_a") != unit("tests/test_b.py::test_b")


@pytest.mark.slow
def test_nothing_is_left_of_a_killed_pytest(tmp_path: Path) -> None:
    inner = Inner(tmp_path, "waits")
    wait_until(inner.ready.exists, "the start of the case")
    assert list(inner.temporary.glob("vel-tests-*/*"))
    inner.process.kill()
    inner.process.communicate(timeout=HANG)
    inner.wait_until_nothing_is_left()


@pytest.mark.storm
def test_nothing_is_left_of_a_pytest_that_was_killed_at_any_moment(tmp_path: Path) -> None:
    inner = Inner(tmp_path, "waits")
    try:
        inner.process.wait(random.uniform(0, 3))
    except subprocess.TimeoutExpired:
        inner.process.kill()
    said, _ = inner.process.communicate(timeout=HANG)
    print(said)
    inner.wait_until_nothing_is_left()


def test_a_process_that_was_forked_just_before_the_death_is_killed(tmp_path: Path) -> None:
    token, guard_is_at_work = secrets.token_hex(8), tmp_path / "ready"
    subprocess.run(
        [sys.executable, "-c", FORK_AND_DIE, str(guard_is_at_work)],
        cwd=ROOT,
        env=os.environ | {process_guard.VARIABLE: f"{os.environ[process_guard.VARIABLE]}:{token}"},
        check=False,
    )
    wait_until(guard_is_at_work.exists, "the work of the guard")
    wait_until(lambda: not process_guard.family(token), "the end of the forked process")


def test_a_forked_process_has_the_token_of_the_process_that_asked_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its parent serves all processes of the run, in its own session."""
    own, other = process_guard.token(), secrets.token_hex(8)
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "velproject.settings"}
    first = Talking("writer", environment)
    try:
        monkeypatch.setenv(process_guard.VARIABLE, other)
        second = Talking("writer", environment)
        try:
            tokens = [
                (process_guard.carries(pid, own), process_guard.carries(pid, other))
                for pid in (first.pid, second.pid)
            ]
            assert tokens == [(True, False), (False, True)]
            processes = [process_guard.look_up(each.pid) for each in (first, second)]
            (parent,) = {process.parent for process in processes if process}
            assert process_guard.look_up(parent).session == parent
            assert not process_guard.carries(parent, other)
        finally:
            second.close(HANG)
    finally:
        first.close(HANG)


@pytest.mark.postgresql
def test_no_server_is_left_of_a_killed_process(tmp_path: Path) -> None:
    token = secrets.token_hex(8)
    say = "import os, time; print(os.environ['VEL_TEST_DATABASE_URL'], flush=True); time.sleep(1e4)"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.postgres", sys.executable, "-c", say],
        cwd=ROOT,
        env=os.environ | {process_guard.VARIABLE: f"{os.environ[process_guard.VARIABLE]}:{token}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    url = process.stdout.readline().strip()
    with psycopg.connect(url) as server:
        assert server.execute("SELECT 1").fetchone() == (1,)
    process.kill()
    process.communicate(timeout=HANG)
    wait_until(lambda: not process_guard.family(token), "the end of all processes")
    directory = Path(parse_qs(urlsplit(url).query)["host"][0])
    wait_until(lambda: not directory.exists(), "the removal of the server's directory")
