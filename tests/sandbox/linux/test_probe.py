"""The results of the host check; no command runs if it finds a problem."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.errors import SandboxUnavailable
from sandbox.executables import find_executable
from sandbox.linux import probe
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.linux.probe import check_host
from tests.sandbox.places import AS_ROOT, account, workspace_in

pytestmark = pytest.mark.bubblewrap

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def unknown_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has not checked the host yet."""
    monkeypatch.setattr(probe, "_good", None)


def fake_bwrap(place: Path, script: str) -> Path:
    """Create a directory for PATH with a bwrap that runs `script`."""
    directory = place / "bin"
    directory.mkdir(exist_ok=True)
    (directory / "bwrap").write_text(f"#!/bin/bash\n{script}\n")
    (directory / "bwrap").chmod(0o755)
    return directory


def test_this_host_is_described() -> None:
    report = check_host()
    assert report.usable, report.problems
    assert report.system == "Linux"
    assert report.as_root == AS_ROOT
    assert report.bwrap is not None
    assert report.bwrap.is_absolute()
    assert report.bwrap_version in subprocess.check_output([report.bwrap, "--version"], text=True)
    assert report.user_namespaces
    assert report.seccomp_architecture == platform.machine()
    assert set(report.cgroups) <= {1, 2}
    assert check_host() is report


@pytest.mark.usefixtures("unknown_host")
def test_without_bubblewrap_nothing_runs(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = workspace_in(place).policy()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SandboxUnavailable, match="apt install bubblewrap"):
        BubblewrapSandbox(policy)
    assert not check_host().usable
    monkeypatch.undo()
    assert check_host().usable, "a mended host must need no restart"


def test_a_process_with_an_empty_path_has_no_sandbox(place: Path) -> None:
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from sandbox import create_sandbox; "
            "create_sandbox(sys.argv[1]).execute('touch ran')",
            str(place / "work"),
        ],
        cwd=ROOT,
        env={"PATH": "", "HOME": "/nonexistent", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert "SandboxUnavailable: This host cannot run a sandbox, so nothing was run" in result.stderr
    assert not (place / "work/ran").exists()


@pytest.mark.usefixtures("unknown_host")
@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo bubblewrap 0.6.1", r"version 0\.6\.1.*0\.8\.0 or newer"),
        ("echo nonsense", r"version unknown"),
        (
            '[ "$1" = --version ] && echo bubblewrap 0.9 || { echo "No permission" >&2; exit 1; }',
            r"did not start.*No permission",
        ),
        # A bwrap that runs the command without a sandbox must not pass, with any report.
        (
            '[ "$1" = --version ] && echo bubblewrap 0.9.0 || { while [ "$1" != -- ]; do shift; '
            'done; shift; "$@"; }',
            r"did not start|did not run",
        ),
    ],
)
def test_a_bubblewrap_that_does_not_do_its_work_is_a_problem(
    place: Path, monkeypatch: pytest.MonkeyPatch, script: str, problem: str
) -> None:
    directory = fake_bwrap(place, script)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    report = check_host()
    assert not report.usable
    assert len(report.problems) >= 1
    with pytest.raises(SandboxUnavailable, match=problem):
        probe.require_bwrap()


@pytest.mark.usefixtures("unknown_host")
def test_disabled_user_namespaces_are_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = fake_bwrap(
        place,
        '[ "$1" = --version ] && echo bubblewrap 0.9.0 || exit 1',
    )
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    settings = {"user/max_user_namespaces": "0"}
    monkeypatch.setattr(probe, "_setting", settings.get)
    assert "sysctl user.max_user_namespaces=15000" in check_host().problems[0]
    settings = {"kernel/unprivileged_userns_clone": "0"}
    monkeypatch.setattr(probe, "_setting", settings.get)
    assert "sysctl kernel.unprivileged_userns_clone=1" in check_host().problems[0]
    settings = {"kernel/apparmor_restrict_unprivileged_userns": "1"}
    monkeypatch.setattr(probe, "_setting", settings.get)
    problem = check_host().problems[0]
    assert "apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict" in problem
    assert "kernel.apparmor_restrict_unprivileged_userns=0" in problem


@pytest.mark.usefixtures("unknown_host")
def test_another_system_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    report = check_host()
    assert not report.usable
    assert "only on Linux" in report.problems[0]


def test_a_program_that_others_can_rewrite_is_not_used(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = fake_bwrap(place, "echo bubblewrap 9.9.9")
    monkeypatch.setenv("PATH", str(directory))
    assert find_executable("bwrap") == directory / "bwrap"
    (directory / "bwrap").chmod(0o757)
    assert find_executable("bwrap") is None
    (directory / "bwrap").chmod(0o775)
    assert find_executable("bwrap") == directory / "bwrap", "its group is that of this process"
    if AS_ROOT:
        os.chown(directory / "bwrap", 0, account())
        assert find_executable("bwrap") is None
        (directory / "bwrap").chmod(0o755)
        assert find_executable("bwrap") == directory / "bwrap"
        os.chown(directory / "bwrap", account(), account())
        assert find_executable("bwrap") is None
    monkeypatch.chdir(directory)
    monkeypatch.setenv("PATH", ".")
    assert find_executable("bwrap") is None
