"""The Linux sandbox: each command runs in its own bubblewrap, without state in between."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from sandbox.account import Account, account_for
from sandbox.base import BaseSandbox, Execution
from sandbox.cancellation import Cancellation
from sandbox.errors import SandboxSetupError
from sandbox.linux.enforcement import Enforcement
from sandbox.linux.execution import BubblewrapExecution
from sandbox.linux.launch import Command, launch
from sandbox.linux.namespace import SHELL
from sandbox.linux.probe import require_bwrap, usable_cgroups
from sandbox.linux.watchdog_disk import Base
from sandbox.own_directory.guard import DirectoryGuard
from sandbox.own_modules import OPTIONS, start_files
from sandbox.policy import InjectedFile, Network, SandboxPolicy
from sandbox.reach import unreachable_directory

if TYPE_CHECKING:
    from sandbox.linux.egress.execution import Egress, WayOut

_PYTHON_SOURCE = "/run/execute_python"
"""Python cannot import this name, so it hides no module of the working directory."""

_PYTHON_START = "/run/execute-python"
"""A directory. Python cannot import this name either."""

_SHELL_SOURCE = "/run/execute"
_LONGEST_ARGUMENT = 100_000
"""In bytes. The kernel accepts 128 KiB; a longer shell command is passed as a file."""


class BubblewrapSandbox(BaseSandbox):
    """Sandbox on Linux. No command ever runs without bubblewrap.

    Raises `SandboxUnavailable` if this host cannot run bubblewrap, and `SandboxSetupError` if
    commands would run as root, as an account to which this process cannot change, or as one that
    cannot reach the directories in the policy's mounts.

    With a network, commands reach the public internet through a proxy in this process. Tests can
    replace the proxy with `egress`. `use_cgroups=False` is also for tests: limits are then enforced
    as on a host without control groups.
    """

    def __init__(
        self,
        policy: SandboxPolicy,
        *,
        egress: Egress | None = None,
        use_cgroups: bool = True,
        guard: DirectoryGuard | None = None,
    ) -> None:
        super().__init__(policy, guard)
        self._egress = _way_out(policy, egress)
        self._bwrap = require_bwrap()
        self._account = account_for(policy)
        self._cgroups = usable_cgroups() if use_cgroups else None
        self._base = Base()
        if self._account.uid != os.geteuid():
            _check_reachable(policy, self._account)

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
        if isinstance(command, str):
            prepared = _shell_command(command, stdin, marker)
        else:
            prepared = Command(_checked_argv(command), stdin=stdin, marker=marker)
        return self._start(prepared, self._wall_time(timeout), on_output, cancel)

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
        source = InjectedFile(_PYTHON_SOURCE, _encoded(code))
        writable = tuple(mount.target for mount in self.policy.mounts if mount.writable)
        start = start_files(_PYTHON_START, _PYTHON_SOURCE, self.working_dir, writable)
        prepared = Command(
            [self.policy.python, *OPTIONS, _PYTHON_SOURCE],
            files=(source, *start),
            environment={"PYTHONPATH": _PYTHON_START},
            stdin=stdin,
            marker=marker,
        )
        return self._start(prepared, self._wall_time(timeout), on_output, cancel)

    def start_server(
        self,
        command: list[str],
        *,
        stdin: int,
        on_stdout: Callable[[bytes], None],
        seconds: float,
        marker: str,
        cancel: Cancellation,
    ) -> Execution:
        """Start a program with which the caller exchanges data, for at most `seconds`.

        `stdin` is the read end of a pipe; the caller closes it after this method returns.
        `on_stdout` gets the output as it arrives, in the thread that calls `wait`, and must not
        block. Everything else is as in `start`, but the time limit of a command does not apply.
        """
        prepared = Command(_checked_argv(command), stdin=stdin, marker=marker)
        return self._start(prepared, seconds, None, cancel, on_stdout)

    def _start(
        self,
        command: Command,
        seconds: float,
        on_output: Callable[[str], None] | None,
        cancel: Cancellation | None,
        on_stdout: Callable[[bytes], None] | None = None,
    ) -> Execution:

        def begin(command: Command) -> Execution:
            enforcement = Enforcement(self.policy, self._account, self._cgroups, self._base)
            protection: list[str] = []
            if self.guard is not None:
                protection, watch = self.guard.prepare(self._account)
                enforcement.watches.append(watch)
            try:
                launched = launch(
                    self._bwrap,
                    self.policy,
                    self._account,
                    command,
                    enforcement.prepare,
                    protection,
                )
            except BaseException:
                enforcement.end()
                raise
            return BubblewrapExecution(
                launched,
                self.policy.limits,
                seconds,
                enforcement=enforcement,
                on_output=on_output,
                on_stdout=on_stdout,
                marker=command.marker,
                cancel=cancel,
            )

        return begin(command) if self._egress is None else self._egress.start(command, begin)


def _way_out(policy: SandboxPolicy, egress: Egress | None) -> WayOut | None:
    if egress is None:
        if policy.network is Network.NONE:
            return None
        # Imported at first use: asyncio's servers and the proxy take 30 ms, and few sandboxes use
        # them.
        from sandbox.linux.egress.execution import Egress  # noqa: PLC0415

        egress = Egress()
    return egress.of(policy)


def _check_reachable(policy: SandboxPolicy, account: Account) -> None:
    for mount in policy.mounts:
        closed = unreachable_directory(mount.source.parent, account.uid)
        if closed is not None:
            raise SandboxSetupError(
                f"{mount.source} cannot be shown in the sandbox: as root, commands run as uid "
                f"{account.uid}, which cannot enter {closed}. Move it to a directory that "
                "every account can enter, such as one in /var/lib/vel."
            )


def _shell_command(command: str, stdin: bytes | None, marker: str) -> Command:
    source = _encoded(command)
    if len(source) <= _LONGEST_ARGUMENT:
        return Command([SHELL, "-c", command], stdin=stdin, marker=marker)
    file = InjectedFile(_SHELL_SOURCE, source)
    return Command([SHELL, _SHELL_SOURCE], files=(file,), stdin=stdin, marker=marker)


def _checked_argv(command: list[str]) -> list[str]:
    if not command:
        raise SandboxSetupError("The command is empty. Give a program and its arguments.")
    for argument in command:
        _encoded(argument)
    return command


def _encoded(text: str) -> bytes:
    if "\0" in text:
        raise SandboxSetupError("The command contains a NUL character. Remove it.")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SandboxSetupError(
            f"The command contains {text[error.start]!r} at {error.start}, which is half a "
            "character and has no UTF-8 form. Remove it."
        ) from error
