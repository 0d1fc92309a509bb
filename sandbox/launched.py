"""A bubblewrap that was started: its reports, its gate, its end."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from dataclasses import dataclass

from sandbox.errors import SandboxSetupError
from sandbox.processes import (
    DEATH_SECONDS,
    hangs_in_the_kernel,
    kill_children,
    parent_of,
    reap_if_own,
    send_kill,
    wait_readable,
)
from sandbox.seccomp import filter_program, host_architecture

SETUP_SECONDS = 20.0
"""How long each step of bubblewrap's set-up may take; all of it takes about 10 ms."""


@dataclass(frozen=True, slots=True)
class Pipes:
    """This side's ends of a sandbox's pipes. What is read from is non-blocking.

    `arrival` and `gate` let the command wait until it may run. bubblewrap reads both at the end
    of its set-up, `arrival` first: a pipe that one byte fills, so that it can be written again
    when the set-up is done. From `gate` it then reads the system-call filter. Should this process
    die before it has written the filter, bubblewrap reads an empty one and gives up: what nobody
    watches yet never runs.
    """

    status: int
    stdout: int
    stderr: int
    arrival: int
    gate: int


class Launched:
    """`pid` is the first process of the sandbox's pid namespace, on the host: with it dies all
    that the command started. It is known from `await_first_process` on.

    Errors of the set-up leave nothing alive.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], pipes: Pipes, *, unix_sockets: bool = False
    ) -> None:
        self._unix_sockets = unix_sockets
        self.process = process
        self.pipes = pipes
        self.exit_code: int | None = None
        self.pid = 0
        self.pidfd = -1
        self._gate_is_open = False
        self._status_text = b""

    def await_first_process(self) -> None:
        """Raises `SandboxSetupError` when there is none to come."""
        deadline = time.monotonic() + SETUP_SECONDS
        while not self.pid:
            left = deadline - time.monotonic()
            if left <= 0 or not wait_readable(self.pipes.status, left):
                raise self.setup_error(f"no process within {SETUP_SECONDS:g} s")
            if not self.read_status():
                raise self.setup_error("it ended before it made a process")
        try:
            pidfd = os.pidfd_open(self.pid)
        except ProcessLookupError as error:
            raise self.setup_error("its first process ended at once") from error
        # The number comes from another process. Root must not touch a stranger by mistake.
        if parent_of(self.pid) != self.process.pid:
            os.close(pidfd)
            raise self.setup_error("its first process ended at once")
        self.pidfd = pidfd

    def await_arrival_at_gate(self) -> None:
        """Return when the set-up is done. Raises `SandboxSetupError`."""
        poll = select.poll()
        poll.register(self.pipes.arrival, select.POLLOUT)
        events = poll.poll(SETUP_SECONDS * 1000)
        if not events:
            raise self.setup_error(f"its set-up took longer than {SETUP_SECONDS:g} s")
        if not events[0][1] & select.POLLOUT:
            raise self.setup_error("it ended during its set-up")  # and left the byte unread

    def open_gate(self) -> None:
        """Let the command run, once. Without effect if it was killed before."""
        self._gate_is_open = True
        try:
            program = filter_program(host_architecture(), unix_sockets=self._unix_sockets)
            os.write(self.pipes.gate, program)
        except BrokenPipeError:
            pass
        finally:
            os.close(self.pipes.gate)

    def read_status(self) -> bool:
        """Take in what bubblewrap reported; False when it will report no more."""
        try:
            data = os.read(self.pipes.status, 65536)
        except BlockingIOError:
            return True
        self._status_text += data
        *lines, self._status_text = self._status_text.split(b"\n")
        for line in filter(None, lines):
            report = json.loads(line)
            self.pid = report.get("child-pid", self.pid)
            self.exit_code = report.get("exit-code", self.exit_code)
        return bool(data)

    def end(self) -> None:
        """Kill whatever is alive and return when all of it is gone."""
        if self.pidfd >= 0:
            send_kill(self.pidfd)
            # Readable once the first process is dead, which is after all others in its namespace.
            if not wait_readable(self.pidfd, DEATH_SECONDS):
                raise SandboxSetupError(hangs_in_the_kernel(self.pid))
            reap_if_own(self.pidfd)
        else:
            kill_children(self.process.pid)
            self.process.kill()
        self._await_outer_process()

    def _await_outer_process(self) -> None:
        if self.process.returncode is not None:
            return
        # It reaps its child and ends by itself. (Popen's own time-out would poll.)
        pidfd = os.pidfd_open(self.process.pid)
        if not wait_readable(pidfd, DEATH_SECONDS):
            self.process.kill()
        os.close(pidfd)
        self.process.wait()

    def close(self) -> None:
        pipes = self.pipes
        for descriptor in (pipes.status, pipes.stdout, pipes.stderr, pipes.arrival):
            os.close(descriptor)
        if not self._gate_is_open:
            os.close(pipes.gate)
        if self.pidfd >= 0:
            os.close(self.pidfd)

    def setup_error(self, what: str) -> SandboxSetupError:
        """End everything and say what bubblewrap said."""
        self.end()
        try:
            said = os.read(self.pipes.stderr, 65536).decode("utf-8", "replace").strip()
        except BlockingIOError:
            said = ""
        return SandboxSetupError(f"bubblewrap failed: {what}. It said: {said or '(nothing)'}")
