"""Watch one command in bubblewrap until all its processes are gone."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable

from sandbox.base import Execution
from sandbox.cancellation import Cancellation
from sandbox.errors import SandboxSetupError
from sandbox.linux.enforcement import Enforcement
from sandbox.linux.launched import Launched
from sandbox.output import CapturedStream, LiveOutput
from sandbox.policy import Limits
from sandbox.processes import send_kill
from sandbox.result import (
    CANCELLED_EXIT_CODE,
    OVER_LIMIT_EXIT_CODE,
    TIMED_OUT_EXIT_CODE,
    ExecutionResult,
)

_CHUNK = 65536


class BubblewrapExecution(Execution):
    """A command that was launched in bubblewrap. The constructor lets it run as its last step."""

    def __init__(
        self,
        launched: Launched,
        limits: Limits,
        seconds: float,
        *,
        enforcement: Enforcement,
        on_output: Callable[[str], None] | None = None,
        on_stdout: Callable[[bytes], None] | None = None,
        marker: str = "",
        cancel: Cancellation | None = None,
    ) -> None:
        self.pid = launched.pid
        self.marker = marker
        self._launched = launched
        self._limits = limits
        self._seconds = seconds
        self._enforcement = enforcement
        self._streams = {
            launched.pipes.stdout: ("stdout", CapturedStream(limits.output)),
            launched.pipes.stderr: ("stderr", CapturedStream(limits.output)),
        }
        live = min(limits.output, limits.live_output)
        self._live = LiveOutput(on_output, live) if on_output else None
        self._on_stdout = on_stdout
        self._lock = threading.Lock()
        self._killed = False
        self._ended = False
        self._ending = "gone"
        self._overstepped: str | None = None
        self._last_words: list[str] = []
        self._duration = 0.0
        self._result: ExecutionResult | None = None
        self._started = time.monotonic()
        self._forget_cancel = cancel.on_cancel(self.kill) if cancel else None
        # If it is already cancelled, its first process is dead, and no command waits to run.
        launched.open_gate()

    def kill(self) -> None:
        with self._lock:
            if not self._ended:
                self._killed = True
                send_kill(self._launched.pidfd)

    def wait(self) -> ExecutionResult:
        if not self._ended:
            try:
                self._ending = self._watch()
            finally:
                self._end()
        if self._result is None:
            self._result = self._result_of(self._ending)
        return self._result

    def _watch(self) -> str:
        """Read output until the command has ended or must be killed.

        Return the reason: exited, gone, late, flood, or over (with `_overstepped` set).
        """
        launched, watches = self._launched, self._enforcement.watches
        poll = select.poll()
        for descriptor in (launched.pipes.status, launched.pidfd, *self._streams):
            poll.register(descriptor, select.POLLIN)
        deadline = self._started + self._seconds
        while True:
            if time.monotonic() >= deadline:
                return "late"
            if self._oversteps():
                return "over"
            next_check = min((watch.due for watch in watches), default=deadline)
            pause = max(0.0, min(deadline, next_check) - time.monotonic())
            for descriptor, _ in poll.poll(pause * 1000):
                if descriptor in self._streams:
                    if not self._take(descriptor):
                        poll.unregister(descriptor)
                elif descriptor == launched.pipes.status:
                    more = launched.read_status()
                    if launched.exit_code is not None:
                        return "exited"
                    if not more:
                        return "gone"
                else:
                    # The first process died before its report was read: bubblewrap's last report
                    # follows.
                    poll.unregister(descriptor)
            if self._printed > self._limits.output_flood:
                return "flood"

    def _oversteps(self) -> bool:
        for watch in self._enforcement.watches:
            if watch.due <= time.monotonic():
                self._overstepped = watch.check()
                if self._overstepped is not None:
                    return True
        return False

    def _end(self) -> None:
        """Kill all processes, read their remaining output, and free all resources."""
        if self._forget_cancel:
            self._forget_cancel()
        with self._lock:
            if self._ended:
                return
            self._ended = True
        self._duration = time.monotonic() - self._started
        try:
            self._launched.end()
            self._drain()
            self._overstepped = self._overstepped or self._enforcement.overstepped()
            self._last_words = self._enforcement.last_words()
        finally:
            self._launched.close()
            self._enforcement.end()

    def _drain(self) -> None:
        # No process can write any more, so the pipes contain all remaining output. Do not wait for
        # an end of file: a descriptor may have been passed to another sandbox through a socket.
        for descriptor in self._streams:
            while self._printed <= self._limits.output_flood and self._take(descriptor):
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                if not poll.poll(0):
                    break

    @property
    def _printed(self) -> int:
        return sum(captured.total for _, captured in self._streams.values())

    def _take(self, descriptor: int) -> bool:
        """Read once from a descriptor. Return False at the end of the stream."""
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return True
        name, captured = self._streams[descriptor]
        captured.feed(data)
        if self._live and data:
            self._live.feed(name, data)
        if self._on_stdout is not None and name == "stdout" and data:
            self._on_stdout(data)
        return bool(data)

    def _result_of(self, ending: str) -> ExecutionResult:
        stdout, stderr = (captured for _, captured in self._streams.values())
        errors = stderr.text()
        exit_code = self._launched.exit_code
        if self._killed:
            exit_code = CANCELLED_EXIT_CODE
        elif self._overstepped is not None:
            exit_code = OVER_LIMIT_EXIT_CODE
            errors += f"\n[killed: {self._overstepped}]\n"
        elif ending == "late":
            exit_code = TIMED_OUT_EXIT_CODE
            errors += f"\n[killed: the time limit of {self._seconds:g} s was reached]\n"
        elif ending == "flood":
            exit_code = OVER_LIMIT_EXIT_CODE
            errors += f"\n[killed: more than {self._limits.output_flood:,} bytes of output]\n"
        elif exit_code is None:
            raise SandboxSetupError(
                "The sandbox ended without an exit code of the command: bubblewrap could not "
                f"start it, or was killed. stderr: {errors.strip() or '(empty)'}"
            )
        errors += "".join(f"\n[{word}]\n" for word in self._last_words)
        return ExecutionResult(
            stdout=stdout.text(),
            stderr=errors,
            exit_code=exit_code,
            timed_out=ending == "late" and not self._killed,
            cancelled=self._killed,
            truncated=bool(stdout.cut or stderr.cut),
            duration=self._duration,
        )
