"""A cluster of worker processes on the test's own database, to be killed in part or in whole.

    with Cluster(directory) as cluster:
        os.kill(random.choice(cluster.workers()), signal.SIGKILL)

The cluster leads a session of its own. Which process is which it says in its log, as django-q
does; `tests.chaos.settings` turns that on.
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

from tests.support.hang import HANG
from tests.support.runs import wait_until

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = "tests.chaos.settings"
APPLICATION = "cluster"
"""How PostgreSQL knows its connections."""

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
    """The test's own database, for other processes."""
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
        self._process: subprocess.Popen[bytes] | None = None
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
        """Ask its main process alone to stop, as an operator does. False: it did not, in time."""
        self.main.send_signal(signal.SIGTERM)
        try:
            return self.main.wait(timeout=seconds) == 0
        except subprocess.TimeoutExpired:
            return False

    def kill_tree(self) -> None:
        """Kill every process of it, and what these have started, at once."""
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
        wait_until(lambda: not session_members(process.pid), "the end of the cluster")

    # Its processes -----------------------------------------------------------------------------

    @property
    def main(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the cluster has not been started"
        return self._process

    def workers(self) -> list[int]:
        return self.pids("worker")

    def pids(self, role: Role) -> list[int]:
        """The living processes that do this now, the oldest first."""
        members = session_members(self.main.pid)
        if role == "sentinel":
            return [pid for pid, parent in members.items() if parent == self.main.pid]
        with self.log.open("rb") as log:
            log.seek(self._log_begin)
            said = re.findall(rf"{_SAYS[role]} (\d+)", log.read().decode())
        return [pid for pid in map(int, said) if pid in members]


def session_members(leader: int) -> dict[int, int]:
    """Living processes of a session, each with its parent."""
    members: dict[int, int] = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            stat = Path(entry.path, "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, parent, _, session = stat.rpartition(")")[2].split()[:4]
        if int(session) == leader and state not in "ZX":
            members[int(entry.name)] = int(parent)
    return members


def wait_for_exit(pid: int) -> None:
    """Until a process that is not a child of this one has ended."""

    def gone() -> bool:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True
        return stat.rpartition(")")[2].split()[0] in "ZX"

    wait_until(gone, f"the end of process {pid}")
