"""The command line that enters a Seatbelt profile, sets limits and then executes the command."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Mapping, Sequence

from sandbox.errors import SandboxSetupError
from sandbox.macos.profile import Profile
from sandbox.policy import Limits

SANDBOX_EXEC = "/usr/bin/sandbox-exec"
"""An absolute path, so PATH is not searched."""

_SHELL = "/bin/bash"
_BLOCK = 1024
"""Bytes in one unit of bash's `ulimit -f`."""


def seatbelt_argv(
    profile: Profile, environment: Mapping[str, str], limits: Sequence[str], command: Sequence[str]
) -> list[str]:
    """Return `command` with exactly `environment`, after `limits` (options of bash's `ulimit`).

    The result still lacks the descriptor that the shell reports to; `with_report` adds it.
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
    """bash that sets `limits`, writes a byte to the descriptor FD and then executes `command`.

    `with_report` replaces FD by a number. The shell exits if it cannot set a limit.
    """
    steps = [f"ulimit {limit}" for limit in limits]
    prelude = " && ".join([*steps, "printf r >&FD", "exec FD>&-", 'exec "$@"'])
    return [_SHELL, "--noprofile", "--norc", "-c", prelude, "sandbox", *command]


def with_report(argv: Sequence[str], descriptor: int) -> list[str]:
    """Insert the number of the report descriptor into an `argv` of this module."""
    at = list(argv).index("--norc") + 2
    return [*argv[:at], argv[at].replace("FD", str(descriptor)), *argv[at + 1 :]]


def limit_options(limits: Limits, processes_now: int) -> list[str]:
    """The part of `limits` that macOS enforces, as options of `ulimit`, at most the hard limits.

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
