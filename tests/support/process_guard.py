"""Kill what a test process started, and remove its directories, when it ends in any way.

`start()` gives the calling process a guard: a small process that waits until the calling process
has ended, also by SIGKILL or `os._exit`. The guard then kills these processes:

- processes with its token in the environment variable `VEL_TEST_RUN`. Each process inherits this
  variable, also a daemon that has left its session and its parent;
- children without this variable that the calling process has reported, because they were forked
  without exec or started with another environment;
- the children, process groups and sessions of all these, for example the inside of a sandbox.

`PR_SET_PDEATHSIG` alone is not enough: it is not inherited, a setuid program clears it, and it
acts when the thread that started the process ends. The guard is not a child of the guarded process
and has its own session, so that tests do not find it.

This module uses only the standard library. The guard runs it as a program.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

VARIABLE = "VEL_TEST_RUN"
CONTROLLER = "VEL_TEST_CONTROLLER"
"""The variable with the number of the process that started the pytest processes of a run."""
_ENV_START = 47
"""The place of `env_start` in /proc/self/stat, counted from the state of the process."""
_ROOM = 16 * 17
"""The number of characters of the tokens that a process can `carry`."""


class Process(NamedTuple):
    """A running process. `began` distinguishes it from a later process with the same number."""

    pid: int
    began: int
    parent: int
    group: int
    session: int

    def lives(self) -> bool:
        now = look_up(self.pid)
        return now is not None and now.began == self.began

    def command(self) -> str:
        try:
            words = Path(f"/proc/{self.pid}/cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            return ""
        return b" ".join(words).decode(errors="replace").strip()[:300]

    def describe(self) -> str:
        return f"process {self.pid}, child of {self.parent}: {self.command()}"

    def send(self, number: signal.Signals) -> None:
        """Send a signal, but never to a later process with the same number."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if self.lives():
                signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            pass
        finally:
            os.close(handle)


def look_up(pid: int) -> Process | None:
    """Read one process. Return None if it has ended, also if it is still a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    if fields[0] in "ZX":
        return None
    parent, group, session = map(int, fields[1:4])
    return Process(pid, int(fields[19]), parent, group, session)


def all_pids() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def carries(pid: int, token: str) -> bool:
    """Return whether the environment of a process has the token."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # it has ended, or belongs to another account
        return False
    marked = f"{VARIABLE}=".encode()
    for entry in environment.split(b"\0"):
        if entry.startswith(marked):
            return token.encode() in entry[len(marked) :].split(b":")
    return False


def family(token: str, reported: Iterable[Process] = ()) -> set[Process]:
    """Return all living processes that belong to the token's owner, except the owner itself."""
    living = {found for pid in all_pids() if (found := look_up(pid))}
    known = {(process.pid, process.began) for process in reported}
    first = {
        process
        for process in living
        if (process.pid, process.began) in known or carries(process.pid, token)
    }
    return relatives(first, living)


def relatives(first: Iterable[Process], living: set[Process]) -> set[Process]:
    """Return the processes of `living` that are in `first`, or in their sessions and groups."""
    wanted = {(process.pid, process.began) for process in first}
    members = {process for process in living if (process.pid, process.began) in wanted}
    while True:
        leaders = {process.pid for process in members}
        more = {
            process
            for process in living - members
            if leaders & {process.parent, process.group, process.session}
        }
        if not more:
            return members
        members |= more


# In the guarded process ------------------------------------------------------------------------


shared: set[Process] = set()
"""Processes that may outlive a test, because they serve several. They end with this process."""


class _State:
    owner = 0
    """The process that called `start()`."""
    token = ""
    channel: socket.socket
    reported: list[Process] = []
    for_run: list[subprocess.Popen[bytes]] = []
    """Processes of `start_for_run`. Python warns about a process whose object is freed."""


_start_process = subprocess.Popen.__init__


def start() -> None:
    """Give this process a guard, which also removes the directories that `tempfile` made here."""
    if _State.owner == os.getpid():
        return
    first = not _State.owner
    _State.owner, _State.token, _State.reported = os.getpid(), secrets.token_hex(8), []
    _State.channel, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    owner = os.pidfd_open(os.getpid())
    # It forks the guard and ends, so that the guard is not a child of this process.
    command = [sys.executable, "-I", "-S", __file__, str(owner), str(its_end.fileno())]
    command.append(_State.token)
    subprocess.run(
        command, pass_fds=[owner, its_end.fileno()], env={}, cwd="/", stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, start_new_session=True, check=True,
    )  # fmt: skip
    os.close(owner)
    its_end.close()
    os.environ[VARIABLE] = ":".join(filter(None, (os.environ.get(VARIABLE), _State.token)))
    if first:
        import tempfile  # not in the guard

        tempfile._sys = _Sys()  # type: ignore[attr-defined]
        os.register_at_fork(after_in_child=_report_fork)
        subprocess.Popen.__init__ = _popen  # type: ignore[method-assign]


def remove(directory: Path) -> None:
    """Remove the directory after the end of this process."""
    _tell(remove=str(directory))


def keep(directory: Path) -> None:
    """Cancel the removal of the directory."""
    _tell(keep=str(directory))


def run_before(command: str, **account: Any) -> None:
    """Run a shell command before the processes are killed; `account` as for `subprocess.run`."""
    _tell(before=[command, account])


def run_after(command: str) -> None:
    """Run a shell command after the processes are killed."""
    _tell(after=[command, {}])


def share(pid: int) -> None:
    """Let a child outlive the test that started it, because it serves several tests."""
    if process := look_up(pid):
        shared.add(process)


def start_for_run(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a process in its own session that serves all processes of the run, and ends with them.

    The guard of this process does not kill it, unless this is the run's controller. Processes that
    it forks can `carry` the token of another process.
    """
    tokens = os.environ[VARIABLE].split(":")
    if os.environ[CONTROLLER] != str(os.getpid()):
        tokens.remove(_State.token)
    options["env"] = {**options["env"], VARIABLE: ":".join(tokens).ljust(_ROOM, ":")}
    process: subprocess.Popen[bytes] = subprocess.Popen.__new__(subprocess.Popen)
    _start_process(process, command, start_new_session=True, **options)
    _State.for_run.append(process)
    return process


def carry(tokens: str) -> None:
    """Let the environment of this forked process, which `carries` reads, have other tokens.

    The kernel shows the memory of the environment with which the program was started. The process
    must be forked from one of `start_for_run`.
    """
    import ctypes  # the guard needs neither this module nor the time of its import

    shown = Path("/proc/self/environ").read_bytes()
    place = (b"\0" + shown).index(f"\0{VARIABLE}=".encode()) + len(VARIABLE) + 1
    assert len(tokens) <= _ROOM == shown.index(b"\0", place) - place
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    ctypes.memmove(int(fields[_ENV_START]) + place, tokens.ljust(_ROOM, ":").encode(), _ROOM)


def token() -> str:
    return _State.token


def reported() -> list[Process]:
    """Return the running processes without a token that this process has started."""
    for process in list(_State.reported):  # other threads may add to it
        if not process.lives():
            _State.reported.remove(process)
    return list(_State.reported)


def show_problems(fd: int) -> None:
    """Let the guard write its error messages to a file descriptor of this process."""
    _tell(fd, stderr=True)


class _Sys:
    """The module sys for tempfile, which announces a directory before it creates it.

    An audit hook would be called for all other events, too, such as each opened file: that is a
    twentieth of the time of pytest's collection.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)

    def audit(self, event: str, *arguments: Any) -> None:
        sys.audit(event, *arguments)
        if event == "tempfile.mkdtemp":
            _tell(remove=os.path.abspath(arguments[0]))


def _report_fork() -> None:
    _tell(process=os.getpid())


def _popen(self: subprocess.Popen[Any], *arguments: Any, **options: Any) -> None:
    _start_process(self, *arguments, **options)
    environment = options.get("env")
    if environment is not None and _State.token not in environment.get(VARIABLE, "").split(":"):
        _tell(process=self.pid)
        if process := look_up(self.pid):
            _State.reported.append(process)


def _tell(*fds: int, **message: Any) -> None:
    if _State.owner:
        socket.send_fds(_State.channel, [json.dumps(message).encode()], fds)


# The guard -------------------------------------------------------------------------------------


def _guard(owner: int, channel: socket.socket, its_token: str) -> None:
    reports: dict[int, Process] = {}
    directories: list[str] = []
    commands: dict[str, list[Any]] = {"before": [], "after": []}

    def note(kind: str, value: Any) -> None:
        if kind == "process":
            for pid in [pid for pid, old in reports.items() if not old.lives()]:
                del reports[pid]
            if process := look_up(value):
                reports[value] = process
        elif kind == "remove":
            directories.append(value)
        elif kind == "keep":
            directories.remove(value)
        elif kind == "stderr":
            os.dup2(value, 2)
        else:
            commands[kind].append(value)

    for message in _messages(channel, owner):
        note(*message)
    problems = [_run(*command) for command in commands["before"]]
    kill(its_token, list(reports.values()))
    # A process that was forked just before the end of the owner may report itself only now. Until
    # it is killed, it keeps the owner's end of the channel open.
    for message in _messages(channel):
        note(*message)
        kill(its_token, list(reports.values()))
    problems += [_run(*command) for command in commands["after"]]
    for directory in directories:
        _remove(directory)
    sys.exit("\n".join(filter(None, problems)) or None)


def _messages(channel: socket.socket, owner: int | None = None) -> Iterator[tuple[str, Any]]:
    """Yield the messages, with a file descriptor as the value if the message has one.

    They end with the owner, or without `owner` when no process has the other end of the channel:
    processes that the owner has forked have it, too.
    """
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    if owner is not None:
        poll.register(owner, select.POLLIN)
    while ready := dict(poll.poll()):
        if channel.fileno() not in ready:
            return  # the owner has ended, and there are no messages left
        data, fds, _, _ = socket.recv_fds(channel, 65_536, 1)
        if data:
            [(kind, value)] = json.loads(data).items()
            yield kind, fds[0] if fds else value
        elif owner is None:
            return
        else:
            poll.unregister(channel)  # the other end is closed


def _remove(directory: str) -> None:
    opened = False
    while os.path.lexists(directory):
        try:
            shutil.rmtree(directory)
        except FileNotFoundError:
            pass  # the guard of a worker removes a directory in it at the same time
        except PermissionError:
            if opened:
                raise
            subprocess.run(["chmod", "-R", "u+rwX", directory], check=True)
            opened = True


def _run(command: str, account: dict[str, Any]) -> str:
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, check=False, **account
    )
    return f"{command} failed: {done.stdout}{done.stderr}" if done.returncode else ""


def kill(its_token: str, reports: Sequence[Process] = ()) -> None:
    """Kill all processes that belong to the owner of the token, and wait for their end."""
    # All are stopped before the first is killed, so that none can start another process. A child
    # without the token can be found only while its parent exists.
    stopped: dict[tuple[int, int], Process] = {}
    while found := family(its_token, [*reports, *stopped.values()]):
        new = [process for process in found if (process.pid, process.began) not in stopped]
        for process in new:
            process.send(signal.SIGSTOP)
            stopped[process.pid, process.began] = process
        if not new:
            for process in found:
                process.send(signal.SIGKILL)
            while any(process.lives() for process in found):
                time.sleep(0.01)


if __name__ == "__main__":
    if os.fork() == 0:
        _guard(int(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])), sys.argv[3])
