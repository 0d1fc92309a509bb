"""What every platform's sandbox offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from sandbox.cancellation import Cancellation
from sandbox.errors import SandboxSetupError
from sandbox.own_directory.guard import DirectoryGuard
from sandbox.policy import MAX_TIMEOUT, Network, SandboxPolicy
from sandbox.result import ExecutionResult


class Execution(ABC):
    """One command that is running. Belongs to the thread that started it; see `BaseSandbox.start`.

    `pid` is the host's number of the process whose death ends everything the command started.
    """

    pid: int
    marker: str

    @abstractmethod
    def wait(self) -> ExecutionResult:
        """Block until the command has ended and nothing of it is left alive; then its result.

        Calling it again returns the same result. Raises `SandboxSetupError` when the sandbox
        ended without running the command to an exit status.
        """

    @abstractmethod
    def kill(self) -> None:
        """End the command and everything it started, now. From any thread, at any time.

        `wait` then returns exit code 137 with `cancelled`. Does nothing once it has ended.
        """


class BaseSandbox(ABC):
    """Runs commands under one policy. Holds nothing between commands; safe to share by threads.

    `working_dir` and `allowed_paths` (the read-only mounts) are paths as commands see them.
    `timeout` is the default wall time of a command in seconds. `guard` protects files in a user's
    own directory that programs outside the sandbox run; None: one is made if the policy has such a
    directory.
    """

    def __init__(self, policy: SandboxPolicy, guard: DirectoryGuard | None = None) -> None:
        self.policy = policy
        self.guard = guard or DirectoryGuard.of(policy)
        self.working_dir = policy.working_dir
        self.allowed_paths = [mount.target for mount in policy.mounts if not mount.writable]
        self.network = policy.network is not Network.NONE
        self.timeout = policy.timeout

    def execute(self, command: str, timeout: float | None = None) -> ExecutionResult:
        """Run a shell command (bash) and wait for it. `timeout` in seconds, 600 at most."""
        return self.start(command, timeout=timeout).wait()

    def execute_python(self, code: str, timeout: float | None = None) -> ExecutionResult:
        """Run Python source and wait for it. The source never becomes a file of the workspace."""
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
        """Start a command and return while it runs. A string is run by bash, a list as it is.

        The thread that calls this must call `wait` and live until then: the command dies with it.
        `on_output` gets both streams as text while `wait` runs, bounded by the output limit.
        `marker` (letters, digits, `-`, `_`) lets `sandbox.reaper` find the command from another
        process. A `cancel` that was thrown already means that the command never runs.

        Raises `SandboxSetupError`; the command has then not run.
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
        """`start` for Python source; line numbers of tracebacks are those of `code`."""

    def _wall_time(self, timeout: float | None) -> float:
        seconds = self.timeout if timeout is None else timeout
        if not seconds > 0:
            raise SandboxSetupError(
                f"A time limit of {seconds!r} s was asked for; give seconds above 0, "
                f"or nothing for the default of {self.timeout:g} s."
            )
        return min(float(seconds), MAX_TIMEOUT)
