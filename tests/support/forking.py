"""Processes forked from a parent that has imported their modules already.

A start of Python with Django and Vel costs a second of processor time, and nearly all of it is
imports. A forked process has its own arguments, environment, directory, descriptors and exit code,
and reads the settings again. It shares only imported modules with its parent. The parent has
one thread and no connection to a database. The pytest processes of a run share the parents, which
end with the controller of pytest-xdist.

A kind of process is a module with two functions: `import_modules()` runs once in the parent, and
`run()` is the forked process.

This module is also the parent's program: `python -P -m tests.support.forking KIND SOCKET LIFE_FD`.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, NoReturn

from tests.support import process_guard
from tests.support.shared import alone, shared_directory

ROOT = Path(__file__).resolve().parents[2]
KEPT = ("PATH", "HOME", "LANG", process_guard.VARIABLE)
"""Environment variables of the tests that commands inherit."""
_READ_AT_START = ("PYTHON", "LC_", "LANG")
"""Prefixes of variables that the interpreter reads when it starts."""
_DESCRIPTORS = 3
_PR_SET_DUMPABLE = 4
_PROJECT = (
    *("agents", "language_model", "memory", "sandbox"),
    *("skills_app", "text_scanner", "velproject"),
)
_DEPEND_ON_NO_SETTINGS = ("skills_app.library.search.",)
"""Modules whose caches are kept."""

Session = Literal["parent", "own", "terminal"]
"""The session of a process: its parent's, its own, or its own with a terminal as standard input.

The terminal is the controlling terminal of the session.
"""


def reads_at_start(environment: Mapping[str, str]) -> bool:
    """Return whether the interpreter reads one of these variables when it starts."""
    return any(name.startswith(_READ_AT_START) for name in environment)


class Forked:
    """A forked process. `close()` kills it, if it still runs."""

    def __init__(
        self,
        kind: str,
        *,
        environment: Mapping[str, str],
        cwd: Path,
        descriptors: Sequence[int],
        arguments: Sequence[str] = (),
        session: Session = "parent",
        namespaces_of: int | None = None,
    ) -> None:
        """Start the process. `descriptors` are its standard input, output and error.

        `namespaces_of` is a process whose user and mount namespaces it joins.
        """
        request = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "cwd": str(cwd),
            "session": session,
            "namespaces_of": namespaces_of,
            "token": os.environ[process_guard.VARIABLE],
        }
        self._exit_code: int | None = None
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._connection.connect(_parent(kind))
            socket.send_fds(self._connection, [json.dumps(request).encode()], list(descriptors))
            self.pid = self._receive("pid")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Forked:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, as `subprocess.Popen.wait` does."""
        if self._exit_code is None:
            self._connection.settimeout(timeout)
            try:
                self._exit_code = self._receive("exit")
            except TimeoutError:
                assert timeout is not None
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout) from None
        return self._exit_code

    def send_signal(self, number: int) -> None:
        """Send a signal. Does nothing if the process has ended, as `Popen.send_signal`."""
        if self._exit_code is None and select.select([self._connection], [], [], 0)[0]:
            self.wait()
        if self._exit_code is None:
            with suppress(ProcessLookupError):  # its parent has not reported the end yet
                os.kill(self.pid, number)

    def close(self) -> None:
        self._connection.close()

    def _receive(self, expected: str) -> int:
        kind, _, value = self._connection.recv(64).decode().partition(" ")
        assert kind == expected, "the process that forks others has ended"
        return int(value)


def run_to_end(
    kind: str,
    arguments: Sequence[str],
    *,
    stdin: str = "",
    environment: Mapping[str, str],
    cwd: Path,
    timeout: float,
    namespaces_of: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a process to its end, as `subprocess.run` does.

    Kills it and raises `TimeoutExpired` after the timeout.
    """
    pipes = [os.pipe() for _ in range(3)]
    (given, give), (out, out_end), (err, err_end) = pipes
    told: list[str] = ["", ""]
    threads = [
        threading.Thread(target=_write, args=(os.fdopen(give, "w", encoding="utf-8"), stdin)),
        threading.Thread(target=_read, args=(os.fdopen(out, encoding="utf-8"), told, 0)),
        threading.Thread(target=_read, args=(os.fdopen(err, encoding="utf-8"), told, 1)),
    ]
    ends = [given, out_end, err_end]
    with Forked(
        kind,
        arguments=arguments,
        environment=environment,
        cwd=cwd,
        descriptors=ends,
        namespaces_of=namespaces_of,
    ) as process:
        for end in ends:
            os.close(end)
        for thread in threads:
            thread.start()
        code = process.wait(timeout)
    for thread in threads:
        thread.join()
    return subprocess.CompletedProcess([kind, *arguments], code, *told)


def _write(pipe: IO[str], text: str) -> None:
    try:
        with pipe:
            pipe.write(text)
    except BrokenPipeError:
        pass  # the process does not read all of its input


def _read(pipe: IO[str], told: list[str], at: int) -> None:
    with pipe:
        told[at] = pipe.read()


@cache
def _parent(kind: str) -> str:
    """Return the address of the parent of that kind. The first call of a run starts it."""
    owner = int(os.environ[process_guard.CONTROLLER])
    controller = process_guard.look_up(owner)
    assert controller, "the run's controller has ended"
    directory = shared_directory() / f"forking-{owner}-{controller.began}"
    directory.mkdir(mode=0o700, exist_ok=True)
    address = directory / kind.rpartition(".")[2]
    with alone("forking"):
        if not address.exists():
            _start_parent(kind, address, owner)
    return str(address)


def _start_parent(kind: str, address: Path, owner: int) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(str(address))
        listening.listen(64)
        life = os.pidfd_open(owner)
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        parent = process_guard.start_for_run(
            [sys.executable, "-P", "-m", __name__, kind, str(listening.fileno()), str(life)],
            pass_fds=[listening.fileno(), life],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=address.parent,
            env={
                **kept,
                "PYTHONPATH": str(ROOT),
                "VEL_DATA_DIR": str(address.parent),
                "VEL_SECRET_KEY": "only-while-modules-are-imported-0123456789-abcdefghijklmnop",
            },
        )
        os.close(life)
    process_guard.share(parent.pid)


# The parent ------------------------------------------------------------------------------------


def search_words() -> None:
    """Load the words for the search of each first message: a third of the time of a short run."""
    import_module("skills_app.library.search.tokens").vocabulary()
    tokens = import_module("skills_app.library.search.tokens")
    for skill in sorted((ROOT / "skills_app/builtin").glob("*/SKILL.md")):
        tokens.stems(skill.read_text(encoding="utf-8"))


def main() -> None:
    kind, listening = import_module(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))
    gc.disable()
    kind.import_modules()
    _empty_caches()
    _check_that_nothing_is_shared()
    gc.freeze()
    if _serve(listening, int(sys.argv[3])):
        # In the child: it continues like a process that has just started.
        gc.enable()
        try:
            kind.run()
        except SystemExit as end:
            _end(end.code)
        _end(0)


def _empty_caches() -> None:
    """Empty the caches of the project, because some depend on the settings."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _PROJECT and not name.startswith(_DEPEND_ON_NO_SETTINGS):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def _check_that_nothing_is_shared() -> None:
    from django.db import connections

    assert threading.active_count() == 1, threading.enumerate()
    assert all(one.connection is None for one in connections.all(initialized_only=True))


def _serve(listening: socket.socket, life: int) -> bool:
    """Fork a process for each request until the process of the pidfd `life` ends.

    Return True in a forked process, and do not return in the parent.
    """
    watched = selectors.DefaultSelector()
    watched.register(listening, selectors.EVENT_READ)
    watched.register(life, selectors.EVENT_READ)
    running: dict[int, tuple[int, socket.socket]] = {}  # by pidfd
    while True:
        for key, _ in watched.select():
            if key.fileobj is listening:
                connection, _ = listening.accept()
                message, descriptors, _, _ = socket.recv_fds(connection, 1 << 18, _DESCRIPTORS)
                pid = os.fork()
                if pid == 0:
                    for other in (watched, listening):
                        other.close()
                    for _, one in running.values():
                        one.close()
                    for pidfd in (life, *running):
                        os.close(pidfd)
                    _become(json.loads(message), descriptors)
                    # Signals are sent only now, because the process has its session now.
                    connection.send(f"pid {os.getpid()}".encode())
                    connection.close()
                    return True
                for descriptor in descriptors:
                    os.close(descriptor)
                pidfd = os.pidfd_open(pid)
                running[pidfd] = (pid, connection)
                watched.register(pidfd, selectors.EVENT_READ)
                watched.register(connection, selectors.EVENT_READ, pid)
            elif key.fileobj == life:
                for pid, _ in running.values():
                    os.kill(pid, signal.SIGKILL)
                os._exit(0)
            elif key.data is not None:  # the client has closed the connection
                os.kill(key.data, signal.SIGKILL)
                watched.unregister(key.fileobj)
            elif isinstance(key.fileobj, int):
                pid, connection = running.pop(key.fileobj)
                _, status = os.waitpid(pid, 0)
                watched.unregister(key.fileobj)
                os.close(key.fileobj)
                if connection in {one.fileobj for one in watched.get_map().values()}:
                    watched.unregister(connection)
                    connection.send(f"exit {os.waitstatus_to_exitcode(status)}".encode())
                connection.close()


def _become(request: dict[str, Any], descriptors: Sequence[int]) -> None:
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    at_terminal = request["session"] == "terminal"
    if request["session"] != "parent":
        os.setsid()
    if at_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        # Shells ignore SIGINT in background jobs, and the tests may run in one.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # The old streams were made for the descriptors of the parent.
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    buffering = 1 if at_terminal else -1
    sys.stdout = os.fdopen(1, "w", buffering, encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(request["environment"])
    process_guard.carry(request["token"])
    if request["namespaces_of"] is not None:
        join_namespaces(request["namespaces_of"])
    os.chdir(request["cwd"])
    sys.argv = ["vel", *request["arguments"]]
    _forget_settings()


def join_namespaces(pid: int) -> None:
    """Join the user and mount namespaces of a process, as `nsenter` does; root needs no other user.

    The caller has one thread.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    kinds = ["mnt"] if os.geteuid() == 0 else ["user", "mnt"]
    namespaces = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in kinds]
    for namespace in namespaces:
        if libc.setns(namespace, 0):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        os.close(namespace)
    # The new capabilities have cleared this flag. Without it, /proc/self belongs to root.
    libc.prctl(_PR_SET_DUMPABLE, 1)


def _forget_settings() -> None:
    from asgiref.local import Local
    from django.conf import settings
    from django.db import connections
    from django.utils.functional import empty

    for name in ("velproject.settings", "velproject.cli.settings", "tests.chaos.settings"):
        sys.modules.pop(name, None)
    settings._wrapped = empty
    connections.__dict__.pop("settings", None)
    connections._settings = None  # type: ignore[attr-defined]
    local = Local(connections.thread_critical)
    connections._connections = local  # type: ignore[attr-defined]


def _end(code: object) -> NoReturn:
    """End like the interpreter, but do not free all modules: that is half of a short command."""
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    main()
