"""The interface of the sandbox on every platform."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from sandbox.cancellation import Cancellation
from sandbox.errors import SandboxSetupError
from sandbox.own_directory.guard import DirectoryGuard
from sandbox.policy import MAX_TIMEOUT, Network, SandboxPolicy
from sandbox.result import ExecutionResult


class Execution(ABC):
    """A running command. It belongs to the thread that started it; see `BaseSandbox.start`.

    `pid` is a process on the host. When that process dies, all processes of the command die.
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
        """Kill the command and all its processes immediately. Can be called from any thread.

        `wait` then returns exit code 137 with `cancelled`. Does nothing if the command has ended.
        """


class BaseSandbox(ABC):
    """Runs commands under one policy. Keeps no state between commands; threads can share it.

    `working_dir` and `allowed_paths` (the read-only mounts) are paths inside the sandbox.
    `timeout` is the default wall time of a command in seconds. `guard` protects files in a user's
    own directory that programs outside the sandbox run. With None, the sandbox creates a guard if
    the policy has such a directory.

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
        """Run a shell command (bash) and wait for it. `timeout` is in seconds, at most 600."""
        return self.start(command, timeout=timeout).wait()

    def execute_python(self, code: str, timeout: float | None = None) -> ExecutionResult:
        """Run Python source and wait for it. The source is never a file in the workspace."""
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
        """Start a command and return while it runs. bash runs a string; a list runs directly.

        The calling thread must call `wait` and must stay alive until `wait` returns: the command
        dies with its thread. `on_output` gets both streams as text while `wait` runs, up to the
        output limit. `marker` (letters, digits, `-`, `_`) lets another process find the command
        with `sandbox.reaper`. If `cancel` was already cancelled, the command never runs.

        Raises `SandboxSetupError`; in this case the command did not run.
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
        """Like `start`, for Python source. Tracebacks have the line numbers of `code`."""

    def _wall_time(self, timeout: float | None) -> float:
        seconds = self.timeout if timeout is None else timeout
        if not seconds > 0:
            raise SandboxSetupError(
                f"Invalid time limit: {seconds!r} s. Use a number of seconds above 0, "
                f"or no value for the default of {self.timeout:g} s."
            )
        return min(float(seconds), MAX_TIMEOUT)
