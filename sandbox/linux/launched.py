"""A bubblewrap process that was started: its reports, the start of the command, and its end."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from dataclasses import dataclass

from sandbox.errors import SandboxSetupError
from sandbox.linux.seccomp import filter_program, host_architecture
from sandbox.processes import (
    DEATH_SECONDS,
    hangs_in_the_kernel,
    kill_children,
    parent_of,
    reap_if_own,
    send_kill,
    wait_readable,
)

SETUP_SECONDS = 20.0
"""Time limit in seconds for each step of bubblewrap's set-up. The whole set-up takes 10 ms."""


@dataclass(frozen=True, slots=True)
class Pipes:
    """This process's ends of a sandbox's pipes. The read ends are non-blocking.

    With `arrival` and `gate`, the command waits until this process lets it run. bubblewrap reads
    both at the end of its set-up, first `arrival`: one byte fills this pipe, so it becomes writable
    again when the set-up is done. bubblewrap then reads the system-call filter from `gate`. If this
    process dies before it has written the filter, bubblewrap reads an empty filter and exits. So a
    command never runs without this process.
    """

    status: int
    stdout: int
    stderr: int
    arrival: int
    gate: int


class Launched:
    """A started bubblewrap.

    `pid` is the first process of the sandbox's pid namespace, as the host numbers it. It is set
    after `await_first_process`. When this process dies, all processes of the command die. Errors of
    the set-up leave no process alive.
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
        """Wait for the sandbox's first process. Raises `SandboxSetupError` if it does not start."""
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
            raise self.setup_error("its first process ended immediately") from error
        # Another process reported the number. Root must not kill an unrelated process.
        if parent_of(self.pid) != self.process.pid:
            os.close(pidfd)
            raise self.setup_error("its first process ended immediately")
        self.pidfd = pidfd

    def await_arrival_at_gate(self) -> None:
        """Wait until bubblewrap's set-up is done. Raises `SandboxSetupError`."""
        poll = select.poll()
        poll.register(self.pipes.arrival, select.POLLOUT)
        events = poll.poll(SETUP_SECONDS * 1000)
        if not events:
            raise self.setup_error(f"its set-up took longer than {SETUP_SECONDS:g} s")
        if not events[0][1] & select.POLLOUT:
            raise self.setup_error("it ended during its set-up")  # without reading the byte

    def open_gate(self) -> None:
        """Let the command run, once. Does nothing if the command was already killed."""
        self._gate_is_open = True
        try:
            program = filter_program(host_architecture(), unix_sockets=self._unix_sockets)
            os.write(self.pipes.gate, program)
        except BrokenPipeError:
            pass
        finally:
            os.close(self.pipes.gate)

    def read_status(self) -> bool:
        """Read bubblewrap's reports. Return False if bubblewrap will send no more."""
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
        """Kill all processes of the sandbox, and return when they have ended.

        Raises:
            SandboxSetupError: A process hangs in the kernel.
        """
        if self.pidfd >= 0:
            send_kill(self.pidfd)
            # The pidfd is readable when the first process is dead, after all others of its
            # namespace.
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
        # bubblewrap reaps its child and then exits. (The time-out of Popen would poll.)
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

    def setup_error(self, problem: str) -> SandboxSetupError:
        """End all processes, and return an error that includes bubblewrap's error output."""
        self.end()
        try:
            stderr = os.read(self.pipes.stderr, 65536).decode("utf-8", "replace").strip()
        except BlockingIOError:
            stderr = ""
        return SandboxSetupError(f"bubblewrap failed: {problem}. stderr: {stderr or '(empty)'}")
