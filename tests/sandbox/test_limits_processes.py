"""Fork bombs and processors: a sandbox takes no share of the host or of another sandbox."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.linux.probe import usable_cgroups
from tests.sandbox.limited import MARKER, MIB, assert_nothing_is_left, limited
from tests.support.hang import HANG

pytestmark = [pytest.mark.bubblewrap, pytest.mark.control_groups]

FORK_BOMB = "echo up; b() { b | b & }; b; while :; do :; done"
MEMORY_BOMB = (
    "print('up', flush=True)\n"
    "import os\n"
    "while True:\n"
    "    if os.fork() == 0:\n"
    "        kept = bytearray(b'x' * (1 << 20))\n"
)
FLOOD = "echo up; yes & yes & yes"
THREADS = """
import threading, time
stop = threading.Event()
started = 0
try:
    while started < 500:
        threading.Thread(target=stop.wait).start()
        started += 1
except RuntimeError:
    pass
stop.set()
print(started)
"""
SPIN = """
import os, resource, time
end = time.monotonic() + 1.2
for _ in range(4):
    if os.fork() == 0:
        while time.monotonic() < end:
            pass
        os._exit(0)
for _ in range(4):
    os.wait()
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, os.nice(0))
"""


@contextmanager
def exploding(box: BubblewrapSandbox, command: list[str], marker: str) -> Iterator[None]:
    """Run `command` during the body, and kill it afterwards."""
    up = threading.Event()
    started = []

    def explode() -> None:
        started.append(box.start(command, marker=marker, on_output=lambda _: up.set()))
        started[0].wait()
        up.set()

    thread = threading.Thread(target=explode)
    thread.start()
    try:
        assert up.wait(HANG)
        yield
    finally:
        started[0].kill()
        thread.join()


def test_a_fork_bomb_ends_at_the_time_limit(place: Path, use_cgroups: bool) -> None:
    box = limited(place, use_cgroups, processes=60, timeout=1)
    assert box.start(["bash", "-c", FORK_BOMB], marker=MARKER).wait().timed_out
    assert_nothing_is_left()


def test_threads_count_as_processes(place: Path, use_cgroups: bool) -> None:
    result = limited(place, use_cgroups, processes=40).execute_python(THREADS)
    assert 20 < int(result.stdout) < 40


def test_the_group_itself_counts_processes(place: Path) -> None:
    """This does not need the kernel's count of an account's processes."""
    if usable_cgroups() is None:
        pytest.skip("needs control groups")
    box = limited(place, True, processes=40)
    group = box.start(["sleep", "600"], marker="test-group")
    try:
        found = Path(f"/proc/{group.pid}/cgroup").read_text()
        assert "vel-sandbox-" in found
    finally:
        group.kill()
        group.wait()


@pytest.mark.parametrize(
    "command",
    [["bash", "-c", FORK_BOMB], ["python3", "-c", MEMORY_BOMB], ["bash", "-c", FLOOD]],
    ids=["fork bomb", "memory bomb", "flood"],
)
def test_the_neighbour_of_a_bomb_still_answers(
    place: Path, use_cgroups: bool, command: list[str]
) -> None:
    bomb = limited(place, use_cgroups, processes=100, memory_total=100 * MIB)
    neighbour = limited(place, use_cgroups, key="neighbour", timeout=15)
    with exploding(bomb, command, MARKER):
        assert neighbour.execute("true").success
        assert neighbour.execute("for n in 1 2 3 4 5; do (true) & done; wait").success
    assert_nothing_is_left()


def test_many_processes_share_the_processors_of_one_command(place: Path, use_cgroups: bool) -> None:
    result = limited(place, use_cgroups, cpus=0.3).execute_python(SPIN)
    used, niceness = map(float, result.stdout.split())
    if use_cgroups:
        assert used < 0.3 * 1.2 * 1.6
        assert niceness == os.nice(0)
    else:
        assert used <= 1.2 * (os.cpu_count() or 1) * 1.1
        assert niceness == max(10, os.nice(0))


def test_a_command_has_a_lower_cpu_weight_than_its_host(place: Path) -> None:
    """Two busy commands get equal shares, and the worker between them gets more."""
    cgroups = usable_cgroups()
    if cgroups is None or "cpu" not in cgroups.parents:
        pytest.skip("needs the cpu controller of control groups")
    box = limited(place, True, cpus=None)
    mine = f"vel-sandbox-*-{os.getpid()}-*-*"
    there = set(cgroups.parents["cpu"].glob(mine))  # of another test, not removed yet
    running = box.start(["sleep", "600"])
    try:
        found = set(cgroups.parents["cpu"].glob(mine)) - there
        file, default = ("cpu.shares", 1024) if cgroups.version == 1 else ("cpu.weight", 100)
        assert [int((group / file).read_text()) for group in found] == [default // 2]
    finally:
        running.kill()
        running.wait()
