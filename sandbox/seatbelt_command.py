"""The command line that enters a Seatbelt profile, sets limits and becomes the command."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Mapping, Sequence

from sandbox.errors import SandboxSetupError
from sandbox.policy import Limits
from sandbox.seatbelt_profile import Profile

SANDBOX_EXEC = "/usr/bin/sandbox-exec"
"""Never looked for on PATH."""

_SHELL = "/bin/bash"
_BLOCK = 1024
"""Bytes in one unit of bash's `ulimit -f`."""


def seatbelt_argv(
    profile: Profile, environment: Mapping[str, str], limits: Sequence[str], command: Sequence[str]
) -> list[str]:
    """`command` with exactly `environment`, after `limits` (options of bash's `ulimit`).

    The first argument of the shell in between is the descriptor that it reports to; this list is
    completed with it by `with_report`.
    """
    for name, value in (*profile.parameters, *environment.items()):
        if "\0" in value or not name or "=" in name or "\0" in name:
            raise SandboxSetupError(
                f"{name!r}={value!r} cannot be passed to a program: it holds NUL, or the name "
                "is empty or holds '='."
            )
    argv = [SANDBOX_EXEC, "-p", profile.text]
    for name, value in profile.parameters:
        argv += ["-D", f"{name}={value}"]
    argv += ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in environment.items())]
    return [*argv, *limited_argv(limits, command)]


def limited_argv(limits: Sequence[str], command: Sequence[str]) -> list[str]:
    """bash that sets `limits`, writes a byte to the descriptor FD and becomes `command`.

    FD stands for a number; see `with_report`. Any limit that cannot be set ends it.
    """
    steps = [f"ulimit {limit}" for limit in limits]
    prelude = " && ".join([*steps, "printf r >&FD", "exec FD>&-", 'exec "$@"'])
    return [_SHELL, "--noprofile", "--norc", "-c", prelude, "sandbox", *command]


def with_report(argv: Sequence[str], descriptor: int) -> list[str]:
    """`argv` of this module with the number of the descriptor to report to."""
    at = list(argv).index("--norc") + 2
    return [*argv[:at], argv[at].replace("FD", str(descriptor)), *argv[at + 1 :]]


def limit_options(limits: Limits, processes_now: int) -> list[str]:
    """What of `limits` macOS enforces, as options of `ulimit`, within what this process may.

    Memory is not among it: macOS does not enforce RLIMIT_AS. It counts processes for the whole
    account, so the limit lies above the `processes_now` that the account has.
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
    """How many processes this account has. Raises `SandboxSetupError`."""
    command = ["/bin/ps", "-U", str(os.geteuid()), "-o", "pid="]
    try:
        listed = subprocess.run(command, capture_output=True, check=True, timeout=10, env={})
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxSetupError(f"The processes could not be counted: {error}.") from error
    return len(listed.stdout.split())
