"""A cluster of worker processes on the database of the test, which tests kill or freeze.

    with Cluster(directory) as cluster:
        os.kill(random.choice(cluster.workers()), signal.SIGKILL)

The cluster leads a session of its own. If it can be, it is forked from a process that has imported
its modules: see `tests.support.forked_cluster`. Its log says which process does what, as django-q2
writes it; `tests.chaos.settings` turns that on.
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
"""The name of its connections in PostgreSQL."""

Role = Literal["worker", "pusher", "monitor", "sentinel"]
_SAYS: dict[Role, str] = {
    "worker": "ready for work at",
    "monitor": "monitoring at",
    "pusher": "pushing tasks at",
}

COMMANDS = {
    # What `vel up` and `vel worker` run: the parent has imported what the workers need.
    "vel": "from velproject.child import run_workers; run_workers()",
    # What an operator may run instead.
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
    """A context manager, which leaves no process behind.

    `directory` is the data directory; `environment` is added to the cluster's. `inside` are words
    before its command, such as those of a network namespace.
    """

    def __init__(
        self,
        directory: Path,
        *,
        command: str = "vel",
        workers: int = 2,
        inside: Sequence[str] = (),
        **environment: str,
    ) -> None:
        self.log = directory / "cluster.log"
        self._size = workers
        self._command = [*inside, sys.executable, "-P", "-c", COMMANDS[command]]
        self._environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": SETTINGS,
            "DATABASE_URL": database_url(),
            "VEL_DATA_DIR": str(directory),
            "VEL_WORKERS": str(workers),
            "VEL_SCRIPTS_DIR": "/",
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "PGAPPNAME": APPLICATION,
            **environment,
        }
        self._forks = command == "vel" and not inside and can_fork(environment)
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

    # Its life ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it and wait until all its workers look for work."""
        self._log_begin = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            if self._forks:
                self._process = fork_cluster(self._environment, ROOT, log)
            else:
                self._process = subprocess.Popen(
                    self._command,
                    env=self._environment,
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        wait_until(self.is_complete, f"the start of the cluster; see {self.log}")

    def is_complete(self) -> bool:
        """Whether all workers are alive and ready."""
        return len(self.workers()) == self._size

    def terminate(self, seconds: float = HANG) -> bool:
        """Ask its main process to stop, as an operator does. Return False if it takes too long."""
        self.main.send_signal(signal.SIGTERM)
        try:
            return self.main.wait(timeout=seconds) == 0
        except subprocess.TimeoutExpired:
            return False

    def kill_tree(self) -> None:
        """Kill all its processes and their children."""
        process, self._process = self._process, None
        if process is None:
            return
        # Stopped first, so that nothing is started again in between.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                break
        process.wait()
        if isinstance(process, Forked):
            process.close()
        wait_until(lambda: not session_members(process.pid), "the end of the cluster")

    # Its processes -----------------------------------------------------------------------------

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

    A signal takes effect later than `os.kill` returns: on a busy machine a thread may take a lock
    in between.
    """
    os.kill(pid, signal.SIGSTOP)

    def has_stopped() -> bool:
        threads = Path(f"/proc/{pid}/task").glob("*/stat")
        return all(each.read_text().rpartition(")")[2].split()[0] == "T" for each in threads)

    wait_until(has_stopped, f"the stop of process {pid}")


def thaw(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)
