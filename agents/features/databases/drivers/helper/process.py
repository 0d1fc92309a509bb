"""A helper process, as a worker starts it, uses it and kills it.

A statement cannot harm a worker: the kernel bounds the memory of the helper, and a process can be
killed while a library function runs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.helper.frames import Channel, Closed, Late

_START_SECONDS = 60.0
_END_SECONDS = 5.0
_KILLED_SECONDS = 0.5
"""The kernel may need longer to free the memory of a killed helper. Nothing waits for that."""
_MOST_SAID = 1024 * 1024
_BOOT = (
    "import sys; worker, dialect, sys.path[:] = int(sys.argv[1]), sys.argv[2], sys.argv[3:];"
    "from agents.features.databases.drivers.helper.main import main; main(worker, dialect)"
)
_VARIABLES = ("TZ", "LANG", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "RES_OPTIONS", "LOCALDOMAIN")
_PREFIXES = ("LC_", "PG", "SSL_", "OPENSSL_", "KRB5")
"""Variables for the drivers. The others can hold secrets of the worker and are not inherited."""


class Helper:
    """One process, which runs one statement at a time. Made for one kind of database."""

    def __init__(self, dialect: str) -> None:
        """Start a process and wait until it is ready.

        Raises QueryFailed if it does not start in time.
        """
        self._process = _spawner.started(dialect)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._channel = Channel(self._process.stdout.fileno(), self._process.stdin.fileno())
        self._killed = False
        self.worn = False
        try:
            self.receive(_MOST_SAID, time.monotonic() + _START_SECONDS)
        except (Closed, Late):
            self.kill()
            raise QueryFailed("The process for statements cannot be started.", "busy") from None
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def closed(self) -> bool:
        return self._killed or self.worn or self._process.poll() is not None

    def fileno(self) -> int:
        return self._channel.reading

    def send(self, message: Any, deadline: float) -> None:
        """Send a message. Raises `Closed` or `Late`."""
        self._channel.send(message, deadline)

    def receive(self, most: int, deadline: float) -> dict[str, Any]:
        """Receive a message. Raises `Closed`, `Late` and `TooLong`.

        Raises RuntimeError for a bug in the helper.
        """
        answer: dict[str, Any] = self._channel.receive(most, deadline)
        if "bug" in answer:
            raise RuntimeError(f"A helper process failed:\n{answer['bug']}")
        return answer

    def tell_to_cancel(self) -> None:
        """Have the server end the statement. The helper is not reused."""
        self.worn = True
        self._process.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        """Kill it. From any thread."""
        self._killed = True
        self._process.kill()

    def close(self) -> None:
        """Let it close its connections and end. Blocks until it has."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_KILLED_SECONDS if self._killed else _END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process.stdout.close()

    def ending(self) -> int | None:
        """Return the signal that ended it, or None."""
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            return None
        return -code if code < 0 else None


class _Spawner:
    """Starts helpers from one thread that lives as long as this process.

    The kernel ends a helper with the thread that started it, not with that thread's process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        os.register_at_fork(after_in_child=self._forget)

    def started(self, dialect: str) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "vel-helpers")
            thread = self._thread
        return thread.submit(_start, dialect).result()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._thread = None


_spawner = _Spawner()


def _start(dialect: str) -> subprocess.Popen[bytes]:
    here = str(Path(__file__).parents[2])
    paths = [path for path in sys.path if path and path != here]
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _BOOT, str(os.getpid()), dialect, here, *paths],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=_environment(),
        bufsize=0,
    )


def _environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _VARIABLES or name.startswith(_PREFIXES)
    }
    # SQLite's temporary files: on a disk, if the host has /var/tmp.
    return kept | {"SQLITE_TMPDIR": temporary_directory()}


def temporary_directory() -> str:
    """Where temporary files of helpers are: `SQLITE_TMPDIR`, `TMPDIR`, `/var/tmp` or another."""
    for place in (os.environ.get("SQLITE_TMPDIR"), os.environ.get("TMPDIR"), "/var/tmp"):  # noqa: S108
        if place and os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK):
            return place
    return tempfile.gettempdir()
