"""Tests of what this host can enforce."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from sandbox.account import account_for
from sandbox.errors import SandboxError, SandboxUnavailable
from sandbox.executables import find_executable
from sandbox.linux.cgroups import CPU, MEMORY, PIDS, Cgroups
from sandbox.linux.cgroups_search import find_cgroups, mounted_versions
from sandbox.linux.enforcement import NICENESS, Enforcement
from sandbox.linux.execution import BubblewrapExecution
from sandbox.linux.launch import Command, launch
from sandbox.linux.namespace import PYTHON, SHELL
from sandbox.linux.seccomp import host_architecture
from sandbox.policy import Limits, SandboxPolicy
from sandbox.uids import uid_for

_ADVICE = (
    "Give Vel control groups: a systemd unit with Delegate=yes, or a container with a "
    "writable /sys/fs/cgroup."
)
_CAP_SYS_PTRACE = 19


@dataclass(frozen=True, slots=True)
class EnforcedLimit:
    """A limit and its enforcement.

    `weakness` describes how commands can exceed the limit because this host lacks something, and
    `advice` is the remedy. Both are empty if nothing is missing.
    """

    limit: str
    by: str
    weakness: str = ""
    advice: str = ""

    @property
    def firm(self) -> bool:
        return not self.weakness


def enforced_limits(cgroups: Cgroups | None) -> tuple[EnforcedLimit, ...]:
    """Return what enforces each limit on this host.

    `cgroups` is where commands get their own control groups, or None.
    """
    group = "" if cgroups is None else f"cgroup v{cgroups.version}"
    kinds = set() if cgroups is None else set(cgroups.parents)
    return (
        EnforcedLimit("processes", f"{group} and rlimit" if PIDS in kinds else "rlimit"),
        EnforcedLimit("memory", f"{group} and rlimit") if MEMORY in kinds else _watched_memory(),
        EnforcedLimit("cpu", f"{group} and rlimit") if CPU in kinds else _shared_cpu(),
        EnforcedLimit("disk", "watchdog"),
        EnforcedLimit("file size", "rlimit and seccomp"),
        EnforcedLimit("open files", "rlimit"),
        EnforcedLimit("output", "watchdog"),
        EnforcedLimit("wall time", "watchdog"),
    )


def _watched_memory() -> EnforcedLimit:
    uncounted = "memory that a command hides in sockets is not counted"
    if os.geteuid() == 0 and not _has_capability(_CAP_SYS_PTRACE):
        uncounted = "without CAP_SYS_PTRACE memory files and /tmp are not counted"
    return EnforcedLimit(
        "memory",
        "watchdog and rlimit",
        f"a command can exceed the limit between two measurements, and {uncounted}.",
        _ADVICE,
    )


def _shared_cpu() -> EnforcedLimit:
    return EnforcedLimit(
        "cpu",
        f"nice {NICENESS}, rlimit and wall time",
        "a command can use every processor until its wall time limit.",
        _ADVICE,
    )


def _has_capability(number: int) -> bool:
    for line in Path("/proc/self/status").read_bytes().split(b"\n"):
        if line.startswith(b"CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False


OLDEST_BWRAP = (0, 8, 0)
"""The first version with --disable-userns."""


@dataclass(frozen=True, slots=True)
class HostReport:
    """The result of `check_host`.

    `problems` prevent the sandbox from running; `warnings` do not. Each line is a problem and its
    solution. `cgroups` are the mounted versions. `command_cgroups` is where each command gets its
    own control group, or None if commands get none. `limits` says for each limit what enforces it.
    """

    system: str
    as_root: bool
    bwrap: Path | None = None
    bwrap_version: str | None = None
    user_namespaces: bool = False
    seccomp_architecture: str | None = None
    cgroups: tuple[int, ...] = ()
    command_cgroups: Cgroups | None = None
    limits: tuple[EnforcedLimit, ...] = ()
    python: Path | None = None
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        return not self.problems


_lock = threading.Lock()
_good: HostReport | None = None


def check_host() -> HostReport:
    """Examine this host and run one command in a real sandbox.

    A report without problems is kept for the life of the process. Otherwise, each call examines the
    host again, so that a repaired host needs no restart.
    """
    global _good
    with _lock:
        if _good is not None:
            return _good
        report = _examine()
        if report.usable:
            _good = report
        return report


def known_report() -> HostReport | None:
    """Return this process's kept report without problems, or None. Does not examine the host."""
    return _good


def require_bwrap() -> Path:
    """Return bubblewrap's path on a usable host. Raises `SandboxUnavailable` with all problems."""
    report = check_host()
    if report.bwrap is None or not report.usable:
        raise SandboxUnavailable(
            "This host cannot run a sandbox, so nothing was run.\n"
            + "\n".join(f"- {problem}" for problem in report.problems)
        )
    return report.bwrap


def _examine() -> HostReport:
    report = HostReport(system=platform.system(), as_root=os.geteuid() == 0)
    if report.system != "Linux":
        return replace(
            report,
            problems=(
                f"Commands can currently be sandboxed only on Linux; this is {report.system}. "
                "Run the workers in a Linux machine or container.",
            ),
        )
    python = Path(PYTHON) if os.access(PYTHON, os.X_OK) else None
    warnings: list[str] = []
    if python is None:
        warnings.append(f"There is no {PYTHON}: execute_python cannot work. Install python3.")
    report = replace(report, cgroups=mounted_versions(), python=python)
    problems: list[str] = []
    try:
        report = replace(report, seccomp_architecture=host_architecture().name)
    except SandboxUnavailable as error:
        problems.append(str(error))
    if not os.access(SHELL, os.X_OK):
        problems.append(f"There is no {SHELL}. Install bash.")
    bwrap = find_executable("bwrap")
    if bwrap is None:
        problems.append(
            "bubblewrap (bwrap) was not found on PATH, or another account can rewrite it. Install "
            "it: `apt install bubblewrap`, `dnf install bubblewrap` or `pacman -S bubblewrap`."
        )
    else:
        version = _version_of(bwrap)
        report = replace(report, bwrap=bwrap, bwrap_version=version)
        if _as_numbers(version) < OLDEST_BWRAP:
            problems.append(
                f"{bwrap} is version {version}; "
                f"{'.'.join(map(str, OLDEST_BWRAP))} or newer is needed. Upgrade bubblewrap."
            )
    if bwrap is not None and not problems:
        cgroups = find_cgroups()
        problems += _try_a_sandbox(bwrap, cgroups)
        if problems and cgroups is not None and not (without := _try_a_sandbox(bwrap, None)):
            warnings.append(
                f"Control groups (version {cgroups.version}) were found but cannot be used: "
                f"{problems[0]}"
            )
            problems, cgroups = without, None
        if not problems:
            if cgroups is not None:
                cgroups.remove_stale()
            report = replace(
                report,
                user_namespaces=True,
                command_cgroups=cgroups,
                limits=enforced_limits(cgroups),
            )
    return replace(report, problems=tuple(problems), warnings=tuple(warnings))


def _version_of(bwrap: Path) -> str:
    output = subprocess.run(
        [bwrap, "--version"], capture_output=True, text=True, env={}, timeout=30, check=False
    ).stdout
    found = re.search(r"\d+(\.\d+)+", output)
    return found.group() if found else "unknown"


def _as_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def usable_cgroups() -> Cgroups | None:
    """Return where commands get their own control groups on this host, or None."""
    return check_host().command_cgroups


def _try_a_sandbox(bwrap: Path, cgroups: Cgroups | None) -> list[str]:
    """Run one command that checks its own confinement. Return the problems that it found."""
    limits = Limits()
    policy = SandboxPolicy(
        mounts=(),
        working_dir="/tmp",  # noqa: S108 - the sandbox's own
        limits=limits,
        uid=uid_for(0) if os.geteuid() == 0 else None,
    )
    command = Command([SHELL, "-c", "cat /proc/self/status /proc/self/limits /proc/self/cgroup"])
    try:
        account = account_for(policy)
        enforcement = Enforcement(policy, account, cgroups)
        try:
            launched = launch(bwrap, policy, account, command, enforcement.prepare)
        except BaseException:
            enforcement.end()
            raise
        result = BubblewrapExecution(launched, limits, 30.0, enforcement=enforcement).wait()
    except SandboxError as error:
        return [f"A trial sandbox did not start. {error} {_likely_fix()}"]
    expected = {
        "without capabilities": r"^CapBnd:\s+0+$",
        "with no_new_privs": r"^NoNewPrivs:\s+1$",
        "under the system-call filter": r"^Seccomp:\s+2$",
        "as an unprivileged user": r"^Uid:\s+65534\s+65534\s+65534\s+65534$",
        "with its process limit": rf"^Max processes\s+{limits.processes}\s+{limits.processes}\s",
    }
    for kind in cgroups.parents if cgroups is not None else ():
        name = kind if cgroups is not None and cgroups.version == 1 else ""
        expected[f"in its {kind} control group"] = rf"^\d+:([^:]+,)?{name}(,[^:]+)?:.*/vel-sandbox-"
    return [
        f"A trial command did not run {expectation}. Upgrade bubblewrap and the kernel. "
        f"stderr: {result.stderr.strip() or '(empty)'}"
        for expectation, pattern in expected.items()
        if not re.search(pattern, result.stdout, re.MULTILINE)
    ]


def _likely_fix() -> str:
    """Return an instruction to change the setting that probably disables user namespaces."""
    for name, value in (
        ("kernel/unprivileged_userns_clone", "1"),
        ("user/max_user_namespaces", "15000"),
    ):
        if _setting(name) == "0":
            return _set_for_good(name.replace("/", "."), value)
    if _setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        profile = "bwrap-userns-restrict"
        return (
            f"AppArmor restricts user namespaces, as in Ubuntu 23.10 and later. Run `sudo apt "
            f"install apparmor-profiles && sudo cp /usr/share/apparmor/extra-profiles/{profile} "
            f"/etc/apparmor.d/ && sudo apparmor_parser -r /etc/apparmor.d/{profile}`. Without such "
            f"a profile: " + _set_for_good("kernel.apparmor_restrict_unprivileged_userns", "0")
        )
    return (
        "In a container, user namespaces and a new /proc must be allowed: start it with "
        "`--security-opt seccomp=seccomp.json --security-opt systempaths=unconfined` (Docker; with "
        "AppArmor also `--security-opt apparmor=unconfined`) or `--security-opt "
        "seccomp=seccomp.json --security-opt 'unmask=/proc/*'` (Podman). The file is "
        "deploy/seccomp.json of Vel. Without it, use seccomp=unconfined. The page "
        "docs/operations/containers.md explains the flags. If Vel is root in the container, it "
        "also needs CAP_SETUID and CAP_SETGID."
    )


def _set_for_good(name: str, value: str) -> str:
    """Return the commands that change a kernel setting now and at each start of the machine."""
    return (
        f"Run `sudo sysctl {name}={value}`, and keep it: "
        f"`echo {name}={value} | sudo tee /etc/sysctl.d/90-vel.conf`."
    )


def _setting(name: str) -> str | None:
    path = Path("/proc/sys") / name
    return path.read_text().strip() if path.exists() else None
