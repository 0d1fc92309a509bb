"""The real `vel` in separate processes, with its own data directory."""

from __future__ import annotations

import ctypes
import json
import os
import pty
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.forking import KEPT, Forked
from tests.support.migrated import copy_sqlite
from tests.velproject.forked import can_fork, fork_at_terminal, run_forked

ROOT = Path(__file__).resolve().parent.parent.parent
DEADLINE = 90.0
"""Seconds after which a process without an answer counts as hung."""


@dataclass
class Vel:
    """The command with one data directory. `environment` is added to that of every process."""

    data: Path
    environment: dict[str, str] = field(default_factory=dict)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-P", "-m", "velproject.cli", *arguments]

    def env(self, **more: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return {
            **kept,
            "PYTHONPATH": str(ROOT),
            "VEL_DATA_DIR": str(self.data),
            **self.environment,
            **more,
        }

    def __call__(
        self, *arguments: str, stdin: str = "", cwd: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the command to its end. Standard input is `stdin`, never a terminal. See `forked`."""
        if can_fork(arguments, {**self.environment, **environment}):
            return run_forked(
                arguments,
                stdin=stdin,
                environment=self.env(**environment),
                cwd=cwd or self.data,
                timeout=DEADLINE,
            )
        return self.fresh(*arguments, stdin=stdin, cwd=cwd, **environment)

    def fresh(
        self, *arguments: str, stdin: str = "", cwd: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the command in a new interpreter, which takes 0.4 to 0.8 s."""
        return subprocess.run(
            self.command(*arguments),
            input=stdin,
            capture_output=True,
            text=True,
            env=self.env(**environment),
            cwd=cwd or self.data,
            timeout=DEADLINE,
            check=False,
        )

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start the command with pipes and without a terminal."""
        return subprocess.Popen(
            self.command(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.env(**environment),
            cwd=self.data,
        )

    def rows(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the JSON lines that a command with `--json` prints."""
        done = self(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def stored(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a query, without a start of the command, which takes 0.4 s."""
        with closing(sqlite3.connect(self.data / "vel.sqlite3")) as database:
            database.row_factory = sqlite3.Row
            return [dict(row) for row in database.execute(query)]

    def runs(self) -> list[dict[str, Any]]:
        """Return the stored runs, the newest first."""
        return self.stored("SELECT * FROM agents_run ORDER BY created_at DESC")

    def requests(self) -> list[dict[str, Any]]:
        """Return the stored approval requests, the oldest first; `run` is the ID of their run."""
        return self.stored("SELECT *, run_id AS run FROM agents_approvalrequest ORDER BY id")

    def value(self, query: str) -> object:
        """Return the only value of a query."""
        with closing(sqlite3.connect(self.data / "vel.sqlite3")) as database:
            return database.execute(query).fetchone()[0]

    def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        return int(str(self.value(f"SELECT count(*) FROM {table}")))

    def execute(self, statement: str) -> None:
        """Change rows without the command."""
        with closing(sqlite3.connect(self.data / "vel.sqlite3")) as database, database:
            database.execute(statement)

    def script(self, *turns: dict[str, Any], name: str = "script.json") -> list[str]:
        """Return the flags that let the offline model play these turns."""
        path = self.data / name
        path.write_text(json.dumps({"turns": list(turns)}))
        return ["--provider", "scripted", "--model", f"file:{path}"]


def say(text: str, *calls: tuple[str, dict[str, Any]], delay: float = 0.0) -> dict[str, Any]:
    """Return one turn of a script."""
    return {
        "text": text,
        "tool_calls": [{"name": name, "input": given} for name, given in calls],
        "delay": delay,
    }


@contextmanager
def new_vel(**environment: str) -> Iterator[Vel]:
    """Return `vel` with a new data directory and a migrated database."""
    data = Path(tempfile.mkdtemp(prefix="vel-cli-", dir="/var/tmp"))
    data.chmod(0o711)
    vel = Vel(data, environment)
    try:
        copy_sqlite(data / "vel.sqlite3")
        yield vel
    finally:
        shutil.rmtree(data, ignore_errors=True)


class Terminal:
    """A `vel` process with a terminal as its standard input."""

    def __init__(self, vel: Vel, *arguments: str, fresh: bool = False, **environment: str) -> None:
        """Start the command: forked, or with `fresh` in a new interpreter."""
        self.shown = ""
        self._read_so_far = 0
        self._forked: Forked | None = None
        env = vel.env(**{"TERM": "xterm", "COLUMNS": "120", **environment})
        if fresh or not can_fork(arguments, {**vel.environment, **environment}):
            self.pid, self._fd = pty.fork()
            if self.pid == 0:
                os.chdir(vel.data)
                signal.signal(signal.SIGINT, signal.SIG_DFL)  # see `tests.support.forking`
                os.execve(sys.executable, vel.command(*arguments), env)
        else:
            self._fd, terminal = pty.openpty()
            self._forked = fork_at_terminal(
                arguments, environment=env, cwd=vel.data, terminal=terminal
            )
            self.pid = self._forked.pid
            os.close(terminal)

    def expect(self, text: str) -> str:
        """Wait for `text` after the last expected text, and return everything shown up to it."""
        end = time.monotonic() + DEADLINE
        while text not in self.shown[self._read_so_far :]:
            assert time.monotonic() < end, f"{text!r} did not come; shown: {self.tail}"
            if not self._read(end):
                raise AssertionError(f"it ended without {text!r}; shown: {self.tail}")
        start = self._read_so_far
        self._read_so_far = self.shown.index(text, start) + len(text)
        return self.shown[start : self._read_so_far]

    @property
    def tail(self) -> str:
        """Return the end of the output, without the frames of the spinner."""
        return "".join(self.shown.split("\x1b[2K"))[-1000:]

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def type_until_the_end(self, text: str) -> None:
        """Type `text` again and again until the command has ended."""
        end = time.monotonic() + DEADLINE
        while self._read(time.monotonic() + 0.1):
            assert time.monotonic() < end, f"it did not end; shown: {self.tail}"
            self.type(text)

    def shows_what_is_typed(self) -> bool:
        """Return whether the terminal shows characters and collects them to lines."""
        flags = termios.tcgetattr(self._fd)[3]
        return bool(flags & termios.ECHO) and bool(flags & termios.ICANON)

    def shows_what_is_typed_before(self, text: str) -> bool:
        """Wait for `text`, and return whether the terminal showed what is typed until then."""
        end = time.monotonic() + DEADLINE
        while text not in self.shown[self._read_so_far :]:
            if self.shows_what_is_typed():
                return True
            assert self._read(min(end, time.monotonic() + 0.001)), "it ended"
            assert time.monotonic() < end, f"{text!r} did not come; shown: {self.tail}"
        return False

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def signal_unnoticed(self, number: signal.Signals) -> None:
        """Send a signal while the command waits for a key, without interrupting its system call.

        Another thread gets the signal. If the main thread got it just before the system call, the
        effect would be the same.
        """
        task = Path(f"/proc/{self.pid}/task")
        end = time.monotonic() + DEADLINE
        while "S" not in (task / str(self.pid) / "stat").read_text().rpartition(")")[2]:
            assert time.monotonic() < end, "the main thread does not wait for a key"
            time.sleep(0.01)
        other = next(int(each.name) for each in task.iterdir() if each.name != str(self.pid))
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.tgkill(self.pid, other, number) == 0, os.strerror(ctypes.get_errno())

    def hang_up(self) -> None:
        """Close the terminal window."""
        os.close(self._fd)
        self._fd = os.open(os.devnull, os.O_RDONLY)

    def finish(self) -> int:
        """Wait for the end of the command and return the exit code."""
        end = time.monotonic() + DEADLINE
        while self._read(end):
            assert time.monotonic() < end, f"it did not end; shown: {self.tail}"
        os.close(self._fd)
        if self._forked is None:
            _, status = os.waitpid(self.pid, 0)
            return os.waitstatus_to_exitcode(status)
        with self._forked:
            return self._forked.wait(DEADLINE)

    def _read(self, end: float) -> bool:
        ready, _, _ = select.select([self._fd], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return True
        try:
            data = os.read(self._fd, 65_536)
        except OSError:  # EIO: the other end is closed
            return False
        self.shown += data.decode("utf-8", "replace")
        return bool(data)
