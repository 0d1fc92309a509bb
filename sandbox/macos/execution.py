"""A running command on a system without namespaces and pidfds, watched by group and pipes.

On macOS a process can leave its group (setsid). Such a process can outlive its command, but it
cannot leave the profile or its limits of CPU time and file size.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence

from sandbox.base import Execution
from sandbox.cancellation import Cancellation
from sandbox.errors import SandboxSetupError
from sandbox.output import CapturedStream, LiveOutput
from sandbox.policy import Limits
from sandbox.result import CANCELLED_EXIT_CODE, TIMED_OUT_EXIT_CODE, ExecutionResult

_CHUNK = 65536


class GroupExecution(Execution):
    """A command that starts as `argv_for(fd)`, in a separate session with an empty environment.

    The started program must write one byte to `fd` immediately before it executes the command. If
    it ends before that byte, the set-up has failed (`SandboxSetupError`). `clean_up` is called
    once, when all processes of the group have ended.
    """

    def __init__(
        self,
        argv_for: Callable[[int], Sequence[str]],
        directory: str,
        limits: Limits,
        seconds: float,
        *,
        stdin: bytes | None = None,
        on_output: Callable[[str], None] | None = None,
        marker: str = "",
        cancel: Cancellation | None = None,
        clean_up: Callable[[], object] = lambda: None,
    ) -> None:
        self.marker = marker
        self._limits = limits
        self._seconds = seconds
        self._clean_up = clean_up
        self._lock = threading.Lock()
        self._killed = self._dead = False
        self._result: ExecutionResult | None = None
        live = min(limits.output, limits.live_output)
        self._live = LiveOutput(on_output, live) if on_output else None
        readers, writers = zip(*(os.pipe() for _ in range(4)), strict=True)
        self._stdout, self._stderr, self._began, self._gone = readers
        self._streams = {
            self._stdout: ("stdout", CapturedStream(limits.output)),
            self._stderr: ("stderr", CapturedStream(limits.output)),
        }
        for reader in readers:
            os.set_blocking(reader, False)
        try:
            self._process = _spawn(argv_for(writers[2]), directory, writers, stdin is not None)
        except BaseException:
            for descriptor in (*readers, *writers):
                os.close(descriptor)
            clean_up()
            raise
        for writer in writers[:3]:
            os.close(writer)
        self.pid = self._process.pid
        self._started = time.monotonic()
        threading.Thread(target=self._reap, args=(writers[3],), daemon=True).start()
        if stdin is not None:
            threading.Thread(target=self._feed, args=(stdin,), daemon=True).start()
        self._forget_cancel = cancel.on_cancel(self.kill) if cancel else None

    def kill(self) -> None:
        with self._lock:
            if not self._dead:
                self._killed = True
                self._kill_group()

    def wait(self) -> ExecutionResult:
        if self._result is None:
            try:
                ending = self._watch()
            finally:
                duration = time.monotonic() - self._started
                self._end()
            self._result = self._result_of(ending, duration)
        return self._result

    def _reap(self, gone: int) -> None:
        """Kill the rest of the group when its first process has ended. Runs in its own thread."""
        self._process.wait()
        with self._lock:
            self._kill_group()
            self._dead = True
        os.close(gone)

    def _feed(self, content: bytes) -> None:
        assert self._process.stdin is not None
        try:
            with self._process.stdin as stream:
                stream.write(content)
        except BrokenPipeError:
            pass  # the command has ended, or does not read its input

    def _kill_group(self) -> None:
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # the group is empty; macOS returns EPERM for a group of dead processes

    def _watch(self) -> str:
        poll = select.poll()
        for descriptor in (*self._streams, self._gone):
            poll.register(descriptor, select.POLLIN)
        deadline = self._started + self._seconds
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return "late"
            ready = [descriptor for descriptor, _ in poll.poll(left * 1000)]
            for descriptor in self._streams:
                if descriptor in ready and not self._take(descriptor):
                    poll.unregister(descriptor)
            if self._printed > self._limits.output_flood:
                return "flood"
            if self._gone in ready:
                return "exited"

    def _end(self) -> None:
        if self._forget_cancel:
            self._forget_cancel()
        with self._lock:
            if not self._dead:
                self._kill_group()
        poll = select.poll()
        poll.register(self._gone, select.POLLIN)
        poll.poll()  # until the reaper thread is done
        for descriptor in self._streams:
            while self._printed <= self._limits.output_flood and self._take(descriptor):
                waiting = select.poll()
                waiting.register(descriptor, select.POLLIN)
                if not waiting.poll(0):
                    break
        self._has_begun = self._read(self._began) == b"r"
        for descriptor in (*self._streams, self._began, self._gone):
            os.close(descriptor)
        self._clean_up()

    @property
    def _printed(self) -> int:
        return sum(captured.total for _, captured in self._streams.values())

    def _take(self, descriptor: int) -> bool:
        """Read once from a descriptor. Return False at the end of the stream."""
        data = self._read(descriptor)
        if data is None:
            return True
        name, captured = self._streams[descriptor]
        captured.feed(data)
        if self._live and data:
            self._live.feed(name, data)
        return bool(data)

    def _read(self, descriptor: int) -> bytes | None:
        """Return available data: None if there is none yet, an empty value at the end."""
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return None

    def _result_of(self, ending: str, duration: float) -> ExecutionResult:
        stdout, stderr = (captured for _, captured in self._streams.values())
        errors = stderr.text()
        code = self._process.returncode
        exit_code = 128 - code if code < 0 else code
        if self._killed:
            exit_code = CANCELLED_EXIT_CODE
        elif not self._has_begun:
            raise SandboxSetupError(
                "The sandbox ended before it ran the command. stderr: "
                f"{errors.strip() or '(empty)'}"
            )
        elif ending == "late":
            exit_code = TIMED_OUT_EXIT_CODE
            errors += f"\n[killed: the time limit of {self._seconds:g} s was reached]\n"
        elif ending == "flood":
            exit_code = 137
            errors += f"\n[killed: more than {self._limits.output_flood:,} bytes of output]\n"
        return ExecutionResult(
            stdout=stdout.text(),
            stderr=errors,
            exit_code=exit_code,
            timed_out=ending == "late" and not self._killed,
            cancelled=self._killed,
            truncated=bool(stdout.cut or stderr.cut),
            duration=duration,
        )


def _spawn(
    argv: Sequence[str], directory: str, writers: Sequence[int], takes_input: bool
) -> subprocess.Popen[bytes]:
    stdout, stderr, began, _ = writers
    try:
        return subprocess.Popen(
            argv,
            stdin=subprocess.PIPE if takes_input else subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            pass_fds=[began],
            env={},
            cwd=directory,
            start_new_session=True,
        )
    except (ValueError, UnicodeEncodeError) as error:
        raise SandboxSetupError(f"The command cannot be passed to a program: {error}.") from error
    except OSError as error:
        raise SandboxSetupError(f"{argv[0]} could not be started: {error}.") from error
