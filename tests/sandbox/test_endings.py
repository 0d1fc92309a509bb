"""After any kind of ending, no process or file of a command is left."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.processes import wait_readable
from sandbox.reaper import kill_marked
from tests.sandbox.places import is_asleep, is_dead, processes_with, until, workspace_in
from tests.support.hang import HANG

pytestmark = pytest.mark.bubblewrap

ROOT = Path(__file__).resolve().parents[2]

DAEMON = """
import os, signal, sys
for n in range(64):
    signal.signal(n, signal.SIG_IGN) if n not in (0, 9, 19, 32, 33) and n < 32 else None
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        null = os.open("/dev/null", os.O_RDWR)
        for n in range(3):
            os.dup2(null, n)
        open("daemon-is-up", "w").close()
        while True:
            signal.pause()
    os._exit(0)
while not os.path.exists("daemon-is-up"):
    pass
"""
"""A process with its own session, adopted by the first process, that ignores all signals it can."""


@pytest.fixture
def marker() -> Iterator[str]:
    token = f"test-{os.getpid()}-{os.urandom(4).hex()}"
    yield token
    assert kill_marked([token]) == 0, "the test left processes behind"


def test_a_daemon_dies_at_the_normal_end(box: BubblewrapSandbox, place: Path, marker: str) -> None:
    execution = box.start(["python3", "-c", DAEMON], marker=marker)
    assert execution.wait().success
    assert (workspace_in(place).root / "workspace/daemon-is-up").exists()
    assert is_dead(execution.pid)
    assert processes_with(marker) == []


def test_a_daemon_dies_at_the_time_limit(box: BubblewrapSandbox, marker: str) -> None:
    script = f"python3 -c '{DAEMON}'; exec sleep 600"
    assert box.start(script, marker=marker, timeout=2).wait().timed_out
    assert processes_with(marker) == []


def test_a_daemon_dies_when_the_command_is_killed(box: BubblewrapSandbox, marker: str) -> None:
    up = threading.Event()
    execution = box.start(
        f"python3 -c '{DAEMON}'; echo up; exec sleep 600",
        marker=marker,
        on_output=lambda _: up.set(),
    )
    killer = threading.Thread(target=lambda: up.wait(HANG) and execution.kill())
    killer.start()
    assert execution.wait().cancelled
    killer.join()
    assert processes_with(marker) == []


def test_a_flood_leaves_no_process(box: BubblewrapSandbox, marker: str) -> None:
    assert box.start("yes & yes & yes", marker=marker).wait().exit_code == 137
    assert processes_with(marker) == []


def test_a_descriptor_in_another_process_does_not_delay_the_end(
    box: BubblewrapSandbox, place: Path
) -> None:
    """Two sandboxes in one directory: one keeps the other's stdout open through a socket."""
    keeper = box.start(
        [
            "python3",
            "-c",
            "import socket\n"
            "server = socket.socket(socket.AF_UNIX); server.bind('/sandbox/shared/s')\n"
            "server.listen(); peer, _ = server.accept()\n"
            "held = socket.recv_fds(peer, 1, 1); print('held'); peer.recv(1)\n"
            "import time; time.sleep(600)",
        ]
    )
    result = box.execute_python(
        "import os, socket, time\n"
        "while not os.path.exists('/sandbox/shared/s'): time.sleep(0.01)\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "while s.connect_ex('/sandbox/shared/s'): time.sleep(0.01)\n"
        "socket.send_fds(s, [b'x'], [1]); print('sent')"
    )
    assert (result.stdout, result.exit_code) == ("sent\n", 0)
    keeper.kill()
    assert keeper.wait().cancelled


_PARENT = """
import sys
from pathlib import Path
from tests.sandbox.places import sandbox_in
execution = sandbox_in(Path(sys.argv[1])).start("echo up; sleep 600", marker=sys.argv[2],
    on_output=lambda text: print(execution.pid, flush=True))
execution.wait()
"""

_PARENT_AT_THE_GATE = """
import signal, sys
from pathlib import Path
from tests.sandbox.places import sandbox_in
import sandbox.linux.bubblewrap
real = sandbox.linux.bubblewrap.launch
def launch(*arguments):
    launched = real(*arguments)
    print(launched.pid, flush=True)
    signal.pause()
sandbox.linux.bubblewrap.launch = launch
sandbox_in(Path(sys.argv[1])).start("touch ran", marker=sys.argv[2])
"""


def start_parent(script: str, place: Path, marker: str) -> tuple[subprocess.Popen[str], int]:
    """Start another Python process with a sandbox. Return it and the sandbox's first process."""
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(place), marker],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert parent.stdout
    return parent, int(parent.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_parent_ends_its_sandbox(place: Path, marker: str, number: signal.Signals) -> None:
    parent, first = start_parent(_PARENT, place, marker)
    pidfd = os.pidfd_open(first)
    # The first process starts the command, asks the kernel to be killed with its parent, and sleeps
    # until the command ends. The command can be faster than it.
    until(lambda: is_asleep(first))
    parent.send_signal(number)
    assert parent.wait() == -number
    assert wait_readable(pidfd, 60)
    os.close(pidfd)
    assert kill_marked([marker]) == 0


def test_a_parent_that_dies_before_the_gate_opens_never_lets_the_command_run(
    place: Path, marker: str
) -> None:
    parent, first = start_parent(_PARENT_AT_THE_GATE, place, marker)
    pidfd = os.pidfd_open(first)
    parent.kill()
    parent.wait()
    assert wait_readable(pidfd, 60)
    os.close(pidfd)
    assert not (workspace_in(place).root / "workspace/ran").exists()
    assert processes_with(marker) == []


def test_a_parent_that_dies_before_bubblewrap_reports_leaves_nothing(
    place: Path, marker: str
) -> None:
    late = place / "bin/bwrap"
    late.parent.mkdir()
    # If the parent ended before the shell had started, process 1 has adopted the shell.
    late.write_text(
        '#!/bin/bash\ncase "$*" in *vel-sandbox:*) '
        "while [ $PPID != 1 ] && [ -d /proc/$PPID ]; do sleep 0.01; done;; "
        f'esac\nexec {shutil.which("bwrap")} "$@"\n'
    )
    late.chmod(0o755)
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(place), marker],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{late.parent}:{os.environ['PATH']}"},
    )
    started = f"vel-sandbox:{marker}"
    until(lambda: any(pid != parent.pid for pid in processes_with(started)))
    # While a process executes another program, its arguments cannot be read: wait for its end.
    late_ones = [os.pidfd_open(pid) for pid in processes_with(started) if pid != parent.pid]
    parent.kill()
    parent.wait()
    for late_one in late_ones:
        assert wait_readable(late_one, 60)
        os.close(late_one)
    until(lambda: processes_with(marker) == [])


def test_a_thread_that_ends_also_ends_its_sandbox(box: BubblewrapSandbox, marker: str) -> None:
    """This is why `wait` belongs to the thread that started it."""
    executions = []
    thread = threading.Thread(
        target=lambda: executions.append(box.start("sleep 600", marker=marker))
    )
    thread.start()
    thread.join()
    pidfd = os.pidfd_open(executions[0].pid)
    kill_marked([marker])  # a sandbox does not notice it in its very first moment
    assert wait_readable(pidfd, 60)
    os.close(pidfd)
