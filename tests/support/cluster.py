"""A cluster of worker processes on the test's database, which tests kill or freeze.

    with Cluster(directory) as cluster:
        os.kill(random.choice(cluster.workers()), signal.SIGKILL)

The cluster has its own session. If possible, it is forked from a process that has imported its
modules: see `tests.support.forked_cluster`. The role of each process is read from django-q2's log,
which `tests.chaos.settings` turns on.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal
from urllib.parse import urlsplit

from django.db import connection

from tests.support import process_guard
from tests.support.forked_cluster import SETTINGS, can_fork, fork_cluster
from tests.support.forking import Forked
from tests.support.hang import HANG
from tests.support.runs import wait_until

ROOT = Path(__file__).resolve().parents[2]
APPLICATION = "cluster"
"""The name of the cluster's connections in PostgreSQL."""

Role = Literal["worker", "pusher", "monitor", "sentinel"]
_SAYS: dict[Role, str] = {
    "worker": "ready for work at",
    "monitor": "monitoring at",
    "pusher": "pushing tasks at",
}

COMMANDS = {
    # The command of `vel up` and `vel worker`: the parent has imported the modules of the workers.
    "vel": "from velproject.child import run_workers; run_workers()",
    # The command that an operator can use instead.
    "qcluster": "from django.core.management import execute_from_command_line as run; "
    "run(['manage.py', 'qcluster'])",
}


def database_url() -> str:
    """Return the URL of the test's database, for other processes."""
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    return urlsplit(os.environ["VEL_TEST_DATABASE_URL"])._replace(path=f"/{name}").geturl()


class Cluster:
    """A context manager that leaves no process behind.

    `directory` is the data directory; `environment` is added to the cluster's. `inside` is put in
    front of its command, for example the command of a network namespace. `root` is the checkout
    whose code it runs.
    """

    def __init__(
        self,
        directory: Path,
        *,
        command: str = "vel",
        workers: int = 2,
        inside: Sequence[str] = (),
        root: Path = ROOT,
        **environment: str,
    ) -> None:
        self.log = directory / "cluster.log"
        self._root = root
        self._size = workers
        self._command = [*inside, sys.executable, "-P", "-c", COMMANDS[command]]
        self._environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": SETTINGS,
            "DATABASE_URL": database_url(),
            "VEL_DATA_DIR": str(directory),
            "VEL_WORKERS": str(workers),
            "VEL_SCRIPTS_DIR": "/",
            "PYTHONPATH": str(root),
            "PYTHONUNBUFFERED": "1",
            "PGAPPNAME": APPLICATION,
            **environment,
        }
        self._forks = command == "vel" and not inside and root == ROOT and can_fork(environment)
        self._process: subprocess.Popen[bytes] | Forked | None = None
        self._log_begin = 0

    def __enter__(self) -> Cluster:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill_tree()
        if error is not None:
            print(self.log.read_text()[-20_000:])

    # Lifecycle ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the cluster and wait until all its workers poll for work."""
        self._log_begin = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            if self._forks:
                self._process = fork_cluster(self._environment, self._root, log)
            else:
                self._process = subprocess.Popen(
                    self._command,
                    env=self._environment,
                    cwd=self._root,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        wait_until(self.is_complete, f"the start of the cluster; see {self.log}")

    def is_complete(self) -> bool:
        """Return whether all workers are alive and ready."""
        return len(self.workers()) == self._size

    def terminate(self, seconds: float = HANG) -> bool:
        """Ask the main process to stop, as an operator does. Return False if it takes too long."""
        self.main.send_signal(signal.SIGTERM)
        try:
            return self.main.wait(timeout=seconds) == 0
        except subprocess.TimeoutExpired:
            return False

    def kill_tree(self) -> None:
        """Kill all processes of the cluster and their children."""
        process, self._process = self._process, None
        if process is None:
            return
        # All are stopped first, so that none starts another process in between.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                break
        process.wait()
        if isinstance(process, Forked):
            process.close()
        wait_until(lambda: not session_members(process.pid), "the end of the cluster")

    # Processes ---------------------------------------------------------------------------------

    @property
    def main(self) -> subprocess.Popen[bytes] | Forked:
        assert self._process is not None, "the cluster has not been started"
        return self._process

    def workers(self) -> list[int]:
        return self.pids("worker")

    def pids(self, role: Role) -> list[int]:
        """Return the living processes with this role, the oldest first."""
        if role == "sentinel":
            members = session_members(self.main.pid)
            return [pid for pid, parent in members.items() if parent == self.main.pid]
        with self.log.open("rb") as log:
            log.seek(self._log_begin)
            said = re.findall(rf"{_SAYS[role]} (\d+)", log.read().decode())
        return [pid for pid in map(int, said) if _parent_in_session(pid, self.main.pid)]


def session_members(leader: int) -> dict[int, int]:
    """Return the living processes of a session, each with its parent."""
    found = ((pid, _parent_in_session(pid, leader)) for pid in process_guard.all_pids())
    return {pid: parent for pid, parent in found if parent}


def _parent_in_session(pid: int, leader: int) -> int:
    """Return the parent of a living process of this session, and 0 for any other process."""
    process = process_guard.look_up(pid)
    return process.parent if process and process.session == leader else 0


def wait_for_exit(pid: int) -> None:
    """Wait until a process has ended that is not a child of this one."""
    wait_until(lambda: process_guard.look_up(pid) is None, f"the end of process {pid}")


def freeze(pid: int) -> None:
    """Stop a process, and wait until all its threads have stopped.

    A signal takes effect after `os.kill` has returned. On a busy machine a thread may take a lock
    in between.
    """
    os.kill(pid, signal.SIGSTOP)

    def has_stopped() -> bool:
        threads = Path(f"/proc/{pid}/task").glob("*/stat")
        return all(each.read_text().rpartition(")")[2].split()[0] == "T" for each in threads)

    wait_until(has_stopped, f"the stop of process {pid}")


def thaw(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)
