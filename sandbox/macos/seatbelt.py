"""The macOS sandbox: one `sandbox-exec` for each command, with the same policy as on Linux.

Limits without a mechanism on macOS are not enforced: see docs/sandbox.md. Before its first command,
each process tests the sandbox with a real command, and refuses to use a sandbox that leaks.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from sandbox.account import account_for
from sandbox.base import BaseSandbox, Execution
from sandbox.cancellation import Cancellation
from sandbox.errors import SandboxSetupError, SandboxUnavailable
from sandbox.macos.command import (
    SANDBOX_EXEC,
    count_own_processes,
    limit_options,
    seatbelt_argv,
    with_report,
)
from sandbox.macos.execution import GroupExecution
from sandbox.macos.paths import shown_paths
from sandbox.macos.profile import render_profile
from sandbox.macos.trial import leaks
from sandbox.markers import marked_argument
from sandbox.own_directory.guard import DirectoryGuard
from sandbox.own_modules import OPTIONS, start_files
from sandbox.policy import Mount, Network, SandboxPolicy

ENVIRONMENT = {
    "LANG": "en_US.UTF-8",
    "LOGNAME": "nobody",
    # The command line tools come first: /usr/bin has only placeholders for Python and git.
    "PATH": (
        "/Library/Developer/CommandLineTools/usr/bin:/opt/homebrew/bin:/usr/local/bin:"
        "/usr/bin:/bin:/usr/sbin:/sbin"
    ),
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "SHELL": "/bin/bash",
    "TERM": "dumb",
    "USER": "nobody",
}

_trial_lock = threading.Lock()
_trial_passed = False


class SeatbeltSandbox(BaseSandbox):
    """Raises `SandboxUnavailable` without Seatbelt, as root, for a policy with network but without
    `egress_socket`, and if the trial finds a leak. No command ever runs without the sandbox.

    Raises `SandboxSetupError` for a policy that macOS cannot express or that would expose the
    machine or an account. `egress_socket` is a UNIX socket with a proxy of the caller; it is the
    only socket that commands may connect to.
    """

    def __init__(
        self,
        policy: SandboxPolicy,
        *,
        egress_socket: Path | None = None,
        guard: DirectoryGuard | None = None,
    ) -> None:
        super().__init__(policy, guard)
        _require_seatbelt()
        if policy.network is not Network.NONE and egress_socket is None:
            raise SandboxUnavailable(
                f"The policy requires network {policy.network.value!r}. On macOS this needs a "
                "proxy behind a UNIX socket (egress_socket). Use network 'none'."
            )
        account_for(policy)
        self._shown = shown_paths(policy, Path.home())
        self._egress_socket = egress_socket.resolve() if egress_socket else None
        self._directory = str(Path(policy.working_dir).resolve())
        self._require_trial()

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
        if command == []:
            raise SandboxSetupError("The command is empty. Give a program and its arguments.")
        if isinstance(command, list):
            return self._start(command, None, {}, timeout, stdin, on_output, marker, cancel)
        shell = ["/bin/bash", "--noprofile", "--norc"]
        return self._start(shell, command, {}, timeout, stdin, on_output, marker, cancel)

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
        python = [self.policy.python, *OPTIONS]
        return self._start(
            python, code, {}, timeout, stdin, on_output, marker, cancel, is_python=True
        )

    def argv(
        self, command: list[str], temporary: Path, environment: dict[str, str], processes_now: int
    ) -> list[str]:
        """Return the complete command line, without the descriptor of its report."""
        protected = self.guard.denied_paths() if self.guard is not None else []
        profile = render_profile(self._shown, temporary, self._egress_socket, protected)
        own = {"HOME": str(temporary), "TMPDIR": str(temporary)}
        variables = ENVIRONMENT | own | dict(self.policy.environment) | environment
        options = limit_options(self.policy.limits, processes_now)
        return seatbelt_argv(profile, variables, options, command)

    def _require_trial(self) -> None:
        _require_no_leak()

    def _start(
        self,
        program: list[str],
        source: str | None,
        environment: dict[str, str],
        timeout: float | None,
        stdin: bytes | None,
        on_output: Callable[[str], None] | None,
        marker: str,
        cancel: Cancellation | None,
        *,
        is_python: bool = False,
    ) -> Execution:
        """Write `source`, if any, to a file in a temporary directory: the last argument."""
        seconds = self._wall_time(timeout)
        mark = [marked_argument(marker)] if marker else []
        watch = self.guard.watch() if self.guard is not None else None
        temporary = Path(tempfile.mkdtemp(prefix="vel-sandbox-")).resolve()

        def remove() -> None:
            shutil.rmtree(temporary, ignore_errors=True)
            if watch is not None:
                watch.last_word()  # a file system that ignores case accepts names without a rule

        try:
            command = list(program)
            if source is not None:
                file = temporary / "command"
                file.write_bytes(_encoded(source))
                command.append(str(file))
                if is_python:
                    environment = environment | self._start_python_files(temporary, str(file))
            # Visible in ps; not used otherwise.
            variables = environment | ({"VEL_SANDBOX": mark[0]} if mark else {})
            argv = self.argv(command, temporary, variables, count_own_processes())
        except BaseException:
            remove()
            raise
        return GroupExecution(
            partial(with_report, argv),
            self._directory,
            self.policy.limits,
            seconds,
            stdin=stdin,
            on_output=on_output,
            marker=marker,
            cancel=cancel,
            clean_up=remove,
        )

    def _start_python_files(self, temporary: Path, code: str) -> dict[str, str]:
        directory = temporary / "execute-python"
        writable = tuple(str(shown.path) for shown in self._shown if shown.writable)
        for file in start_files(str(directory), code, self._directory, writable):
            target = Path(file.target)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
        return {"PYTHONPATH": str(directory)}


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise SandboxSetupError(
            f"The command contains {text[error.start]!r} at {error.start}, which is half a "
            "character and has no UTF-8 form. Remove it."
        ) from error


def _require_seatbelt() -> None:
    system = platform.system()
    if system != "Darwin" or not os.access(SANDBOX_EXEC, os.X_OK):
        raise SandboxUnavailable(
            f"Seatbelt is not available ({system}): {SANDBOX_EXEC} is missing, or this is not "
            "macOS. On Linux Vel uses bubblewrap."
        )
    if os.geteuid() == 0:
        raise SandboxUnavailable(
            "This process is root, and on macOS commands run as the account of this process. "
            "Start it as an ordinary user."
        )


class _OnTrial(SeatbeltSandbox):
    def _require_trial(self) -> None:
        """Skip the trial: the trial itself uses this sandbox."""


def _require_no_leak() -> None:
    """Raise `SandboxUnavailable` unless a sandbox of this process has passed the trial."""
    global _trial_passed
    with _trial_lock:
        if _trial_passed:
            return
        with tempfile.TemporaryDirectory(prefix="vel-trial-") as directory:
            inside, outside = (Path(directory).resolve() / name for name in ("inside", "outside"))
            inside.mkdir()
            outside.mkdir()
            mounts = (Mount(inside, str(inside), writable=True),)
            found = leaks(_OnTrial(SandboxPolicy(mounts, str(inside))), inside, outside)
        if found:
            raise SandboxUnavailable(
                f"Seatbelt does not confine commands correctly on this Mac: {'; '.join(found)}. "
                "No command was run. Please report this with the version of macOS."
            )
        _trial_passed = True
