"""The macOS sandbox: each command runs in its own `sandbox-exec`, with the policy of Linux.

Limits without a mechanism on macOS are not enforced: see docs/reference/sandbox.md. Before its
first command, each process tests the sandbox with a real command, and refuses to use a sandbox that
leaks.

The module also builds the command line that enters a Seatbelt profile, sets limits and then
executes the command.
"""

from __future__ import annotations

import os
import platform
import resource
import shlex
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from sandbox.account import account_for
from sandbox.base import BaseSandbox, Execution
from sandbox.cancellation import Cancellation
from sandbox.errors import SandboxSetupError, SandboxUnavailable
from sandbox.macos.execution import GroupExecution
from sandbox.macos.profile import Profile, render_profile, shown_paths
from sandbox.markers import marked_argument
from sandbox.own_directory.guard import DirectoryGuard
from sandbox.own_modules import OPTIONS, start_files
from sandbox.policy import Limits, Mount, Network, SandboxPolicy

ENVIRONMENT = {
    "LANG": "en_US.UTF-8",
    "LOGNAME": "nobody",
    # The command line tools come first, because /usr/bin has only placeholders for Python and git.
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
    """Sandbox on macOS. No command ever runs without Seatbelt.

    Raises `SandboxUnavailable` without Seatbelt, as root, for a policy with network but without
    `egress_socket`, and if the test finds a leak. Raises `SandboxSetupError` for a policy that
    macOS cannot express or that would expose the machine or an account.

    `egress_socket` is a UNIX socket with a proxy of the caller; it is the only socket that commands
    may connect to.
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
        """Return the complete command line, except for the descriptor that the shell reports to."""
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
        """Start `program`. If there is `source`, its last argument is a temporary file with it."""
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
            # The marker is visible in ps; nothing else uses it.
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
        """Skip the test that commands need, because the test itself uses this sandbox."""


def _require_no_leak() -> None:
    """Raise `SandboxUnavailable` unless a sandbox of this process has passed the test."""
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


SANDBOX_EXEC = "/usr/bin/sandbox-exec"
"""An absolute path, so PATH is not searched."""

_SHELL = "/bin/bash"
_BLOCK = 1024
"""Bytes in one unit of bash's `ulimit -f`."""


def seatbelt_argv(
    profile: Profile, environment: Mapping[str, str], limits: Sequence[str], command: Sequence[str]
) -> list[str]:
    """Return a command line that runs `command` in a profile, with only `environment`.

    `limits` are options of bash's `ulimit`. The result lacks the descriptor that the shell reports
    to; `with_report` adds it.
    """
    for name, value in (*profile.parameters, *environment.items()):
        if "\0" in value or not name or "=" in name or "\0" in name:
            raise SandboxSetupError(
                f"{name!r}={value!r} cannot be passed to a program: it contains NUL, or the name "
                "is empty or contains '='."
            )
    argv = [SANDBOX_EXEC, "-p", profile.text]
    for name, value in profile.parameters:
        argv += ["-D", f"{name}={value}"]
    argv += ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in environment.items())]
    return [*argv, *limited_argv(limits, command)]


def limited_argv(limits: Sequence[str], command: Sequence[str]) -> list[str]:
    """Return a command line of bash that sets `limits` and then executes `command`.

    Before it executes the command, the shell writes a byte to the descriptor FD, which
    `with_report` replaces by a number. The shell exits if it cannot set a limit.
    """
    steps = [f"ulimit {limit}" for limit in limits]
    prelude = " && ".join([*steps, "printf r >&FD", "exec FD>&-", 'exec "$@"'])
    return [_SHELL, "--noprofile", "--norc", "-c", prelude, "sandbox", *command]


def with_report(argv: Sequence[str], descriptor: int) -> list[str]:
    """Insert the number of the report descriptor into a command line of this module."""
    at = list(argv).index("--norc") + 2
    return [*argv[:at], argv[at].replace("FD", str(descriptor)), *argv[at + 1 :]]


def limit_options(limits: Limits, processes_now: int) -> list[str]:
    """Return the limits that macOS enforces, as options of `ulimit`, at most the hard limits.

    Memory is not included, because macOS does not enforce RLIMIT_AS. macOS counts processes for the
    whole account, so the limit is added to the account's `processes_now`.
    """
    processes = None if limits.processes is None else limits.processes + processes_now
    wanted = (
        ("-c", resource.RLIMIT_CORE, 0, 1),
        ("-t", resource.RLIMIT_CPU, limits.cpu_seconds, 1),
        ("-f", resource.RLIMIT_FSIZE, limits.file_size, _BLOCK),
        ("-n", resource.RLIMIT_NOFILE, limits.open_files, 1),
        ("-u", resource.RLIMIT_NPROC, processes, 1),
    )
    options = []
    for option, kind, value, unit in wanted:
        if value is None:
            continue
        _, hard = resource.getrlimit(kind)
        ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
        options.append(f"{option} {ceiling // unit}")
    return options


def count_own_processes() -> int:
    """Return the number of processes of this account. Raises `SandboxSetupError`."""
    command = ["/bin/ps", "-U", str(os.geteuid()), "-o", "pid="]
    try:
        listed = subprocess.run(command, capture_output=True, check=True, timeout=10, env={})
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxSetupError(f"The processes could not be counted: {error}.") from error
    return len(listed.stdout.split())


_SECRET = "not for commands"  # noqa: S105 - the test must not be able to read it


def leaks(sandbox: BaseSandbox, inside: Path, outside: Path) -> list[str]:
    """Return the faults of `sandbox`: what a command can do and must not, or cannot do and must.

    `inside` is the directory that the command may write, `outside` one that it must not even read.
    Both are empty directories of the caller.
    """
    (outside / "secret").write_text(_SECRET)
    (outside / "target").touch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = sandbox.execute(_script(inside, outside, port), timeout=30)
        server.setblocking(False)
        reached = _was_reached(server)
    found = []
    if result.exit_code != 0 or result.stdout.split()[:1] != ["begin"]:
        found.append(f"a plain command fails ({result.stderr.strip()[:200]})")
    if not (inside / "written").exists():
        found.append("its own directory cannot be written")
    if _SECRET in result.stdout:
        found.append("a file outside can be read")
    if (outside / "made").exists() or (outside / "target").stat().st_size:
        found.append("files outside can be written")
    if reached:
        found.append("this machine's network can be reached")
    return found


def _script(inside: Path, outside: Path, port: int) -> str:
    mine, theirs = shlex.quote(str(inside)), shlex.quote(str(outside))
    return (
        f"echo begin; echo x > {mine}/written; cat {theirs}/secret; ln -s {theirs} {mine}/link;"
        f" cat {mine}/link/secret; echo x > {theirs}/made; echo x > {mine}/link/target;"
        f" (exec 3<>/dev/tcp/127.0.0.1/{port}); curl -s -m 1 http://127.0.0.1:{port}/; exit 0"
    )


def _was_reached(server: socket.socket) -> bool:
    try:
        connection, _ = server.accept()
    except BlockingIOError:
        return False
    connection.close()
    return True
