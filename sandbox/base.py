"""Interface that the sandbox has on every platform."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from sandbox.cancellation import Cancellation
from sandbox.errors import SandboxSetupError
from sandbox.own_directory.guard import DirectoryGuard
from sandbox.policy import MAX_TIMEOUT, Network, SandboxPolicy
from sandbox.result import ExecutionResult


class Execution(ABC):
    """A running command. Only the thread that started it may wait for it: see `BaseSandbox.start`.

    `pid` is a process on the host. When that process dies, all processes of the command die (on
    macOS, only those in its process group).
    """

    pid: int
    marker: str

    @abstractmethod
    def wait(self) -> ExecutionResult:
        """Block until all processes of the command have ended, and return the result.

        A second call returns the same result. Raises `SandboxSetupError` if the sandbox ended
        before the command had an exit status.
        """

    @abstractmethod
    def kill(self) -> None:
        """Kill the command and all its processes immediately. Any thread can call this method.

        `wait` then returns exit code 137 with `cancelled`. Does nothing if the command has ended.
        """


class BaseSandbox(ABC):
    """Base class of sandboxes, which run commands under one policy.

    A sandbox keeps no state between commands, and threads can share it. `working_dir` and
    `allowed_paths` (the read-only mounts) are paths inside the sandbox. `timeout` is the default
    wall time of a command in seconds. `guard` protects files in a user's own directory that
    programs outside the sandbox run. With None, the sandbox creates a guard if the policy has such
    a directory.

    >>> isinstance(create_sandbox("./work"), BaseSandbox)
    True
    """

    def __init__(self, policy: SandboxPolicy, guard: DirectoryGuard | None = None) -> None:
        self.policy = policy
        self.guard = guard or DirectoryGuard.of(policy)
        self.working_dir = policy.working_dir
        self.allowed_paths = [mount.target for mount in policy.mounts if not mount.writable]
        self.network = policy.network is not Network.NONE
        self.timeout = policy.timeout

    def execute(self, command: str, timeout: float | None = None) -> ExecutionResult:
        """Run a shell command (bash) and wait for it.

        `timeout` is in seconds; more than 600 counts as 600.
        """
        return self.start(command, timeout=timeout).wait()

    def execute_python(self, code: str, timeout: float | None = None) -> ExecutionResult:
        """Run Python source and wait for it. The source is never written to the workspace."""
        return self.start_python(code, timeout=timeout).wait()

    @abstractmethod
    def start(
        self,
        command: str | list[str],
        *,
        timeout: float | None = None,
        stdin: bytes | None = None,
        on_output: Callable[[str], None] | None = None,
        marker: str = "",
        cancel: Cancellation | None = None,
    ) -> Execution:
        """Start a command and return without waiting for its end.

        A string runs in bash; a list runs directly. The calling thread must call `wait` and must
        stay alive until `wait` returns, because the command dies with its thread.

        Args:
            timeout: Wall time in seconds; None means the sandbox's default.
            on_output: Called with the text of both streams while `wait` runs, up to the output
                limit.
            marker: A name (letters, digits, `-`, `_`) with which another process can find the
                command in `sandbox.reaper`.
            cancel: Kills the command when it is cancelled. If it already is, the command never
                runs.

        Raises:
            SandboxSetupError: The command could not be started, and did not run.
        """

    @abstractmethod
    def start_python(
        self,
        code: str,
        *,
        timeout: float | None = None,
        stdin: bytes | None = None,
        on_output: Callable[[str], None] | None = None,
        marker: str = "",
        cancel: Cancellation | None = None,
    ) -> Execution:
        """Start Python source like `start`. Tracebacks have the line numbers of `code`."""

    def _wall_time(self, timeout: float | None) -> float:
        seconds = self.timeout if timeout is None else timeout
        if not seconds > 0:
            raise SandboxSetupError(
                f"Invalid time limit: {seconds!r} s. Use a number of seconds above 0, "
                f"or no value for the default of {self.timeout:g} s."
            )
        return min(float(seconds), MAX_TIMEOUT)
