"""The macOS sandbox without a Mac.

The tests cover its command line, its refusals, its process groups, and the trial that it must pass
before it is used.
"""

from __future__ import annotations

import os
import platform
import resource
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox import BaseSandbox, BubblewrapSandbox, Cancellation, Execution, SandboxUnavailable
from sandbox.errors import SandboxSetupError
from sandbox.macos.execution import GroupExecution
from sandbox.macos.profile import Profile, ShownPath, render_profile, shown_paths
from sandbox.macos.seatbelt import (
    ENVIRONMENT,
    SeatbeltSandbox,
    count_own_processes,
    leaks,
    limit_options,
    limited_argv,
    seatbelt_argv,
    with_report,
)
from sandbox.policy import Limits, Mount, Network, SandboxPolicy
from tests.sandbox.places import AS_ROOT, account, processes_with, until

PROFILE = Profile(
    "(version 1)\n(deny default)\n", (("SHOWN_0", '/a "b"\n(c)'), ("TEMPORARY", "/t"))
)

GOLDEN = """\
(allow file-read* file-test-existence
  (subpath (param "SHOWN_0")))
(allow file-read-metadata file-test-existence
  (path-ancestors (param "SHOWN_0")))
(deny file-write*
  (subpath (param "SHOWN_0")))
(deny file-write-unlink
  (path-ancestors (param "SHOWN_0")))
(allow file-read* file-test-existence
  (subpath (param "SHOWN_1")))
(allow file-read-metadata file-test-existence
  (path-ancestors (param "SHOWN_1")))
(allow file-write*
  (subpath (param "SHOWN_1")))
(allow file-read* file-test-existence
  (subpath (param "TEMPORARY")))
(allow file-read-metadata file-test-existence
  (path-ancestors (param "TEMPORARY")))
(allow file-write*
  (subpath (param "TEMPORARY")))
(deny file-write-setugid)
(allow system-socket
  (socket-domain AF_UNIX))
"""


LONG = f"600.{os.getpid()}"
"""Seconds, and a mark to find this process's commands."""


def run(
    command: str | list[str], limits: Limits | None = None, seconds: float = 30.0, **options: Any
) -> GroupExecution:
    """Run a command as Seatbelt's sandbox does, with limits and report, without sandbox-exec."""
    limits = limits or Limits()
    argv = ["/bin/bash", "-c", command] if isinstance(command, str) else command
    whole = limited_argv(limit_options(limits, count_own_processes()), argv)
    return GroupExecution(lambda fd: with_report(whole, fd), "/", limits, seconds, **options)


class Bare(BaseSandbox):
    """A sandbox without any protection."""

    def start(
        self, command: str | list[str], *, timeout: float | None = None, **_: Any
    ) -> Execution:
        return run(command, seconds=self._wall_time(timeout))

    def start_python(self, code: str, **_: Any) -> Execution:
        raise NotImplementedError


def test_the_rules_of_mounts_are_these() -> None:
    shown = [ShownPath(Path("/data"), False), ShownPath(Path("/work"), True)]
    text = render_profile(shown, Path("/t")).text
    assert text[text.index("(allow file-read* file-test-existence\n  (subpath (param") :] == GOLDEN
    socket = render_profile(shown, Path("/t"), Path("/egress")).text
    assert socket == text + (
        '(allow network-outbound\n  (remote unix-socket (path-literal (param "EGRESS_SOCKET"))))\n'
    )


def test_the_command_line() -> None:
    argv = with_report(
        seatbelt_argv(PROFILE, {"A": "1", "B": 'x "y"'}, ["-c 0", "-n 9"], ["/bin/ls", "FD"]), 7
    )
    assert argv == [
        *("/usr/bin/sandbox-exec", "-p", PROFILE.text),
        *("-D", 'SHOWN_0=/a "b"\n(c)', "-D", "TEMPORARY=/t"),
        *("/usr/bin/env", "-i", "A=1", 'B=x "y"'),
        *("/bin/bash", "--noprofile", "--norc", "-c"),
        'ulimit -c 0 && ulimit -n 9 && printf r >&7 && exec 7>&- && exec "$@"',
        *("sandbox", "/bin/ls", "FD"),
    ]


@given(value=st.text(st.characters(exclude_categories=["Cs"])), name=st.text(max_size=5))
def test_names_and_values_are_one_argument_each_or_refused(value: str, name: str) -> None:
    try:
        argv = seatbelt_argv(PROFILE, {name: value}, [], ["true"])
    except SandboxSetupError:
        assert "\0" in value + name or not name or "=" in name
    else:
        assert argv[argv.index("-i") + 1] == f"{name}={value}"
        assert len(argv) == len(seatbelt_argv(PROFILE, {"A": "1"}, [], ["true"]))


def test_a_path_with_nul_is_refused() -> None:
    with pytest.raises(SandboxSetupError, match="NUL"):
        seatbelt_argv(Profile("", (("SHOWN_0", "/a\0"),)), {}, [], ["true"])


def test_the_environment_does_not_name_the_host() -> None:
    assert "HOME" not in ENVIRONMENT
    assert set(ENVIRONMENT) == {
        *("LANG", "LOGNAME", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "SHELL"),
        *("TERM", "USER"),
    }


def policy_of(*mounts: Mount, start: Path | None = None) -> SandboxPolicy:
    return SandboxPolicy(mounts, str(start or mounts[-1].source))


def test_links_are_resolved_and_order_is_kept(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    policy = policy_of(Mount(tmp_path, str(tmp_path)), Mount(link, str(link), writable=True))
    assert shown_paths(policy, Path("/nobody")) == [
        ShownPath(tmp_path.resolve(), False),
        ShownPath(real.resolve(), True),
    ]


def test_mounts_at_other_paths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SandboxSetupError, match="only at its own path"):
        shown_paths(policy_of(Mount(tmp_path, "/sandbox/workspace")), Path("/nobody"))
    with pytest.raises(SandboxSetupError, match="cannot be read"):
        shown_paths(policy_of(Mount(tmp_path / "x", str(tmp_path / "x"))), Path("/nobody"))
    with pytest.raises(SandboxSetupError, match="No mount of the policy contains"):
        shown_paths(policy_of(Mount(tmp_path, str(tmp_path)), start=Path("/usr")), Path("/nobody"))


def test_pipes_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SandboxSetupError, match="a pipe"):
        shown_paths(policy_of(Mount(tmp_path / "pipe", str(tmp_path / "pipe"))), Path("/nobody"))


def test_machines_and_accounts_are_not_shown(tmp_path: Path) -> None:
    home = tmp_path / "me"
    for name in ("Library/Keychains", ".ssh", "work/.aws", "work"):
        (home / name).mkdir(parents=True, exist_ok=True)
    for path in (
        *(home, tmp_path, home / "Library", home / "Library/Keychains", home / ".ssh"),
        *(home / "work/.aws", Path("/"), Path("/usr"), Path("/usr/bin"), Path("/dev")),
    ):
        for writable in (True, False):
            with pytest.raises(SandboxSetupError, match=r"private files|cannot be read"):
                shown_paths(policy_of(Mount(path, str(path), writable)), home)
    assert shown_paths(policy_of(Mount(home / "work", str(home / "work"))), home)


def test_seatbelt_needs_a_mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_of(Mount(tmp_path, str(tmp_path), writable=True))
    with pytest.raises(SandboxUnavailable, match="Seatbelt is not available"):
        SeatbeltSandbox(policy)
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    with pytest.raises(SandboxUnavailable, match=r"Darwin.*missing"):
        SeatbeltSandbox(policy)


@pytest.mark.root
def test_root_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_on_a_mac(monkeypatch)
    with pytest.raises(SandboxUnavailable, match="ordinary user"):
        SeatbeltSandbox(policy_of(Mount(tmp_path, str(tmp_path), writable=True)))


def test_a_network_without_a_proxy_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_on_a_mac(monkeypatch)
    monkeypatch.setattr(os, "geteuid", lambda: 501)
    mounts = (Mount(tmp_path, str(tmp_path), writable=True),)
    for network in (Network.FULL, Network.ALLOWLIST):
        with pytest.raises(SandboxUnavailable, match="egress_socket"):
            SeatbeltSandbox(SandboxPolicy(mounts, str(tmp_path), network=network))


def test_a_sandbox_that_fails_its_trial_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This "sandbox-exec" runs its command and ignores the profile."""
    as_on_a_mac(monkeypatch)
    fake = tmp_path / "sandbox-exec"
    fake.write_text('#!/bin/bash\nwhile [[ $1 == -[pD] ]]; do shift 2; done\nexec "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setattr("sandbox.macos.seatbelt.SANDBOX_EXEC", str(fake))
    monkeypatch.setattr(os, "geteuid", lambda: 501)
    monkeypatch.setattr("sandbox.macos.seatbelt.count_own_processes", lambda: 10_000)
    work = tmp_path / "work"
    work.mkdir()
    with pytest.raises(SandboxUnavailable, match=r"outside can be read.*written.*network"):
        SeatbeltSandbox(policy_of(Mount(work, str(work), writable=True)))


def as_on_a_mac(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr("sandbox.macos.seatbelt.SANDBOX_EXEC", "/bin/bash")


def two_directories(place: Path) -> tuple[Path, Path]:
    made = (place / "inside", place / "outside")
    for directory in made:
        directory.mkdir(mode=0o777)
        directory.chmod(0o777)
        if AS_ROOT:
            os.chown(directory, account() or -1, account() or -1)
    return made


@pytest.mark.slow
def test_the_trial_finds_every_leak(tmp_path: Path) -> None:
    inside, outside = two_directories(tmp_path)
    assert leaks(Bare(policy_of(Mount(inside, str(inside), True))), inside, outside) == [
        "a file outside can be read",
        "files outside can be written",
        "this machine's network can be reached",
    ]


@pytest.mark.bubblewrap
def test_the_trial_finds_no_leak_in_a_working_sandbox(place: Path) -> None:
    inside, outside = two_directories(place)
    sandbox = BubblewrapSandbox(policy_of(Mount(inside, str(inside), True)))
    assert leaks(sandbox, inside, outside) == []


def test_the_trial_finds_a_sandbox_that_runs_nothing(tmp_path: Path) -> None:
    class Dead(Bare):
        def start(self, command: str | list[str], **_: Any) -> Execution:
            return run("exit 1")

    inside, outside = two_directories(tmp_path)
    found = leaks(Dead(policy_of(Mount(inside, str(inside), True))), inside, outside)
    assert found == ["a plain command fails ()", "its own directory cannot be written"]


def test_streams_exit_code_and_an_empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "of the host")
    result = run("echo out; echo err >&2; /usr/bin/env; exit 3").wait()
    assert (result.exit_code, result.stderr) == (3, "err\n")
    assert result.stdout.startswith("out\n")
    assert "SECRET" not in result.stdout
    assert run("kill -9 $$").wait().exit_code == 137
    assert run(["/bin/cat"], stdin=b"given").wait().stdout == "given"
    assert run(["/bin/cat"]).wait().stdout == ""


def test_limits_are_set_before_the_command() -> None:
    limits = Limits(open_files=64, file_size=2048, cpu_seconds=7, processes=500)
    result = run("ulimit -c; ulimit -t; ulimit -f; ulimit -n; ulimit -u", limits).wait()
    core, cpu, size, files, processes = result.stdout.split()
    assert (core, cpu, size, files) == ("0", "7", "2", "64")
    assert 500 < int(processes) <= 500 + count_own_processes() + 500
    full = run(
        "head -c 4096 /dev/zero > /dev/shm/vel-$$; ls -l /dev/shm/vel-$$; rm /dev/shm/vel-$$",
        limits,
    )
    assert " 2048 " in full.wait().stdout


def test_limits_above_the_hard_limit_are_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (16, 16))
    assert limit_options(Limits(processes=None, file_size=None), 5) == ["-c 0", "-t 16", "-n 16"]


def test_a_limit_that_cannot_be_set_is_an_error() -> None:
    argv = limited_argv(["-n nonsense"], ["/bin/echo", "ran"])
    with pytest.raises(SandboxSetupError, match=r"before it ran the command.*ulimit"):
        GroupExecution(lambda fd: with_report(argv, fd), "/", Limits(), 20).wait()


def test_a_failed_start_is_an_error_and_leaves_nothing() -> None:
    cleaned: list[bool] = []
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(SandboxSetupError, match="could not be started"):
        GroupExecution(
            lambda fd: ["/nowhere/sandbox-exec"],
            "/",
            Limits(),
            20,
            clean_up=lambda: cleaned.append(True),
        )
    assert cleaned == [True]
    until(lambda: len(os.listdir("/proc/self/fd")) <= before)


def test_a_late_group_is_killed() -> None:
    result = run(f"echo begun; sleep {LONG}1 & exec sleep {LONG}1", seconds=0.3).wait()
    assert (result.exit_code, result.timed_out, result.stdout) == (124, True, "begun\n")
    assert "time limit of 0.3 s" in result.stderr
    until(lambda: not processes_with(f"{LONG}1"))


def test_remaining_processes_of_a_group_are_killed() -> None:
    cleaned: list[bool] = []
    running = run(f"sleep {LONG}2 & echo left", clean_up=lambda: cleaned.append(True))
    assert running.wait().stdout == "left\n"
    assert running.wait() is running.wait()
    until(lambda: not processes_with(f"{LONG}2"))
    assert cleaned == [True]


def test_floods_are_cut_and_killed() -> None:
    result = run("yes", Limits(output=1000, output_flood=1_000_000)).wait()
    assert (result.exit_code, result.truncated) == (137, True)
    assert "more than 1,000,000 bytes" in result.stderr
    assert len(result.stdout) < 1200
    assert run("echo 'x' | head -c 2; yes | head -c 5000", Limits(output=1000)).wait().truncated


@pytest.mark.parametrize("way", ["kill", "cancel", "cancelled before"])
def test_kill_and_cancel(way: str) -> None:
    cancel = Cancellation()
    if way == "cancelled before":
        cancel.cancel()
    running = run(f"exec sleep {LONG}3", cancel=cancel)
    ends: dict[str, Callable[[], None]] = {"kill": running.kill, "cancel": cancel.cancel}
    if way in ends:
        threading.Timer(0.05, ends[way]).start()
    result = running.wait()
    assert (result.exit_code, result.cancelled) == (137, True)
    until(lambda: not processes_with(f"{LONG}3"))
    running.kill()


def test_descriptors_and_threads_are_released() -> None:
    run("true").wait()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        run("true", stdin=b"x" * 200_000).wait()
    until(
        lambda: (
            threading.active_count() == 1
            or not any(
                thread.daemon and thread.is_alive() and "_reap" in thread.name
                for thread in threading.enumerate()
            )
        )
    )
    until(lambda: len(os.listdir("/proc/self/fd")) <= before)


def test_python_starts_with_the_requested_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This "sandbox-exec" runs its command; the rest is as on a Mac."""
    as_on_a_mac(monkeypatch)
    fake = tmp_path / "sandbox-exec"
    fake.write_text('#!/bin/bash\nwhile [[ $1 == -[pD] ]]; do shift 2; done\nexec "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setattr("sandbox.macos.seatbelt.SANDBOX_EXEC", str(fake))
    monkeypatch.setattr("sandbox.macos.seatbelt._trial_passed", True)
    monkeypatch.setattr(os, "geteuid", lambda: 501)
    monkeypatch.setattr("sandbox.macos.seatbelt.count_own_processes", lambda: 10_000)
    work = tmp_path / "work"
    work.mkdir()
    for name in ("sitecustomize", "usercustomize", "json", "msvcrt"):
        (work / f"{name}.py").write_text("print('hidden')\n")
    (work / "mine.py").write_text("print('mine')\n")
    box = SeatbeltSandbox(policy_of(Mount(work, str(work), writable=True)))
    result = box.execute_python("import json, subprocess, mine\nprint(2 + 2)")
    assert (result.stdout, result.exit_code) == ("mine\n4\n", 0), result.stderr
