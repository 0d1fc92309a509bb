"""`vel` forked from a process that has imported it already, which costs a fifth of a start.

Each command is a process of its own, with its own arguments, environment, directory, pipes and exit
code, and reads the settings anew. What it has from its parent are imported modules. Starts from
nothing are in `tests.velproject.cli.test_start`, in `test_yes_lets_it_run` at a terminal, and in
every `Vel.start`.

This module is also the parent's program: `python -P -m tests.velproject.forked SOCKET LIFE_FD`.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import IO, NoReturn

from tests.support import process_guard

ROOT = Path(__file__).resolve().parents[2]
KEPT = ("PATH", "HOME", "LANG", process_guard.VARIABLE)
"""Environment variables of the tests that commands inherit."""
_READ_AT_START = ("PYTHON", "LC_", "LANG")
"""What an interpreter reads when it begins."""
_OTHERWISE = frozenset({"up", "worker"})
"""Commands with the settings of a server."""
_DESCRIPTORS = 3


def can_fork(arguments: Sequence[str], changed: Mapping[str, str]) -> bool:
    """Whether a forked command is like one from nothing, where `changed` is the environment."""
    return not _OTHERWISE.intersection(arguments) and not any(
        name.startswith(_READ_AT_START) for name in changed
    )


def run_forked(
    arguments: Sequence[str],
    *,
    stdin: str,
    environment: Mapping[str, str],
    cwd: Path,
    timeout: float,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as `subprocess.run` does. Raises `TimeoutError`, having killed
    it."""
    pipes = [os.pipe() for _ in range(_DESCRIPTORS)]
    (given, give), (out, out_end), (err, err_end) = pipes
    told: list[str] = ["", ""]
    threads = [
        threading.Thread(target=_write, args=(os.fdopen(give, "w", encoding="utf-8"), stdin)),
        threading.Thread(target=_read, args=(os.fdopen(out, encoding="utf-8"), told, 0)),
        threading.Thread(target=_read, args=(os.fdopen(err, encoding="utf-8"), told, 1)),
    ]
    with _ask(arguments, environment, cwd, [given, out_end, err_end]) as connection:
        connection.settimeout(timeout)
        for end in (given, out_end, err_end):
            os.close(end)
        for thread in threads:
            thread.start()
        # Closed without an answer, the parent kills it.
        answer = connection.recv(64)
    assert answer, "the process that forks commands has ended"
    for thread in threads:
        thread.join()
    return subprocess.CompletedProcess(["vel", *arguments], int(answer), *told)


def fork_at_terminal(
    arguments: Sequence[str], *, environment: Mapping[str, str], cwd: Path, terminal: int
) -> tuple[int, socket.socket]:
    """Start a command in a session with this controlling terminal.

    Returns its pid, and a socket that receives its exit code as text. Closing the socket kills the
    command.
    """
    connection = _ask(arguments, environment, cwd, [terminal] * _DESCRIPTORS, at_terminal=True)
    return int(connection.recv(64)), connection


def _ask(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path,
    descriptors: list[int],
    *,
    at_terminal: bool = False,
) -> socket.socket:
    """Ask the parent for a command."""
    request = {
        "arguments": list(arguments),
        "environment": dict(environment),
        "cwd": str(cwd),
        "at_terminal": at_terminal,
    }
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(_parent())
    socket.send_fds(connection, [json.dumps(request).encode()], descriptors)
    return connection


def _write(pipe: IO[str], text: str) -> None:
    try:
        with pipe:
            pipe.write(text)
    except BrokenPipeError:
        pass  # it did not want to read it all


def _read(pipe: IO[str], told: list[str], at: int) -> None:
    with pipe:
        told[at] = pipe.read()


@lru_cache(maxsize=1)
def _parent() -> str:
    """The address of this process's parent of commands, started when it is first asked for."""
    directory = tempfile.mkdtemp(prefix="vel-forked-", dir="/var/tmp")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    address = f"{directory}/socket"
    life, held = os.pipe()  # its other end is closed when this process ends, however that comes
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(address)
        listening.listen(64)
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        parent = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(listening.fileno()), str(life)],
            pass_fds=[listening.fileno(), life],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=directory,
            env={
                **kept,
                "PYTHONPATH": str(ROOT),
                "VEL_DATA_DIR": directory,
                "VEL_SECRET_KEY": "only-while-modules-are-imported-0123456789-abcdefghijklmnop",
            },
        )
    os.close(life)
    process_guard.share(parent.pid)

    def end() -> None:
        os.close(held)
        parent.wait()

    atexit.register(end)
    return address


# The parent ------------------------------------------------------------------------------------


def main() -> None:
    listening = socket.socket(fileno=int(sys.argv[1]))
    _import_commands()
    if _serve(listening, int(sys.argv[2])):
        # In the child: from here on it is as if it had just begun.
        try:
            import_module("velproject.cli.main").main()
        except SystemExit as end:
            _end(end.code)


def _import_commands() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "velproject.cli.settings"
    import_module("django").setup()
    import_module("velproject.schema")
    for file in sorted((ROOT / "velproject/cli/actions").glob("[a-z]*.py")):
        if file.stem not in _OTHERWISE:
            import_module(f"velproject.cli.actions.{file.stem}")
    for name in ("memory.scanner.scanning", "skills_app.scan.scanning", "velproject.cli.main"):
        import_module(name)
    assert threading.active_count() == 1, threading.enumerate()
    gc.freeze()


def _serve(listening: socket.socket, life: int) -> bool:
    """Fork what is asked for until the other end of `life` is closed. True in a fork."""
    watched = selectors.DefaultSelector()
    watched.register(listening, selectors.EVENT_READ)
    watched.register(life, selectors.EVENT_READ)
    running: dict[int, tuple[int, socket.socket]] = {}  # by pidfd
    while True:
        for key, _ in watched.select():
            if key.fileobj is listening:
                connection, _ = listening.accept()
                message, descriptors, _, _ = socket.recv_fds(connection, 1 << 18, _DESCRIPTORS)
                request = json.loads(message)
                pid = os.fork()
                if pid == 0:
                    for other in (watched, listening, connection):
                        other.close()
                    for _, one in running.values():
                        one.close()
                    for pidfd in (life, *running):
                        os.close(pidfd)
                    _become(request, descriptors)
                    return True
                if request["at_terminal"]:
                    connection.send(str(pid).encode())
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
            elif key.data is not None:  # nobody waits for its end any more
                os.kill(key.data, signal.SIGKILL)
                watched.unregister(key.fileobj)
            elif isinstance(key.fileobj, int):
                pid, connection = running.pop(key.fileobj)
                _, status = os.waitpid(pid, 0)
                watched.unregister(key.fileobj)
                os.close(key.fileobj)
                if connection in {one.fileobj for one in watched.get_map().values()}:
                    watched.unregister(connection)
                    connection.send(str(os.waitstatus_to_exitcode(status)).encode())
                connection.close()


def _become(request: dict[str, object], descriptors: Sequence[int]) -> None:
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if request["at_terminal"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    # The old ones have looked at what was open then.
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    buffering = 1 if request["at_terminal"] else -1
    sys.stdout = os.fdopen(1, "w", buffering, encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(request["environment"])  # type: ignore[call-overload]
    os.chdir(str(request["cwd"]))
    sys.argv = ["vel", *request["arguments"]]  # type: ignore[misc]
    _forget_settings()


def _end(code: object) -> NoReturn:
    """End as an interpreter does, but for letting all modules go, half of a short command."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


def _forget_settings() -> None:
    from asgiref.local import Local
    from django.conf import settings
    from django.db import connections
    from django.utils.functional import empty

    from agents.conf import vel_settings
    from skills_app.conf import skill_settings

    for name in ("velproject.settings", "velproject.cli.settings"):
        sys.modules.pop(name, None)
    settings._wrapped = empty
    connections.__dict__.pop("settings", None)
    connections._settings = None
    connections._connections = Local(connections.thread_critical)
    vel_settings.cache_clear()
    skill_settings.cache_clear()


if __name__ == "__main__":
    main()
