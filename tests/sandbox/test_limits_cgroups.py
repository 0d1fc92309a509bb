"""Control groups of commands are found, set, reported, and removed after any ending."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.errors import SandboxSetupError
from sandbox.linux import probe
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.linux.cgroups import MEMORY, PIDS, Cgroups
from sandbox.linux.cgroups_search import find_cgroups
from sandbox.linux.probe import check_host, enforced_limits
from sandbox.policy import Limits
from tests.sandbox.limited import limited, own_groups
from tests.sandbox.places import until, workspace_in

pytestmark = [pytest.mark.bubblewrap, pytest.mark.control_groups]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def cgroups() -> Cgroups:
    found = check_host().command_cgroups
    if found is None:
        pytest.skip("needs control groups")
    return found


def test_a_group_has_every_limit(cgroups: Cgroups) -> None:
    group = cgroups.create(Limits(processes=17, memory_total=64 * 1024**2, cpus=0.5))
    files = {
        1: {
            "memory": {"memory.limit_in_bytes": "67108864"},
            "pids": {"pids.max": "17"},
            "cpu": {"cpu.cfs_quota_us": "50000", "cpu.shares": "512"},
        },
        2: {
            "memory": {"memory.max": "67108864", "memory.oom.group": "1"},
            "pids": {"pids.max": "17"},
            "cpu": {"cpu.max": "50000 100000", "cpu.weight": "50"},
        },
    }[cgroups.version]
    try:
        for kind, directory in group.directories.items():
            for file, value in files[kind].items():
                assert (directory / file).read_text().strip() == value
    finally:
        group.remove()
    assert own_groups() == []


def test_a_command_is_in_its_group_and_cannot_see_the_group(place: Path, cgroups: Cgroups) -> None:
    result = limited(place, True).execute("cat /proc/self/cgroup; ls -A /sys")
    assert result.stdout.count("vel-sandbox-") == len(set(cgroups.parents.values()))
    assert "No such file" in result.stderr


def test_a_command_that_cannot_be_put_in_a_group_does_not_run(
    place: Path, cgroups: Cgroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = replace(cgroups, parents=dict.fromkeys(cgroups.parents, place / "gone"))
    monkeypatch.setattr("sandbox.linux.bubblewrap.usable_cgroups", lambda: gone)
    box = limited(place, True)
    with pytest.raises(SandboxSetupError, match="limits could not be set"):
        box.execute("touch ran")
    assert not (workspace_in(place).root / "workspace/ran").exists()


_PARENT = """
import sys
from pathlib import Path
from tests.sandbox.places import sandbox_in
execution = sandbox_in(Path(sys.argv[1])).start("echo up; sleep 600", marker="test-stale",
    on_output=lambda text: print(execution.pid, flush=True))
execution.wait()
"""


def test_groups_of_a_dead_worker_are_removed_by_a_later_one(place: Path, cgroups: Cgroups) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(place)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert parent.stdout
    parent.stdout.readline()

    def left() -> list[Path]:
        return [
            path
            for directory in set(cgroups.parents.values())
            for path in directory.glob(f"vel-sandbox-*-{parent.pid}-*-*")
        ]

    count = len(set(cgroups.parents.values()))
    assert len(left()) == count
    cgroups.remove_stale()
    assert len(left()) == count, "its worker lives"
    parent.kill()
    parent.wait()
    assert len(left()) == count, "no process was left to remove it"
    subprocess.run(
        [sys.executable, "-c", "from sandbox.linux.probe import check_host; check_host()"],
        check=True,
        cwd=ROOT,
    )
    assert left() == []


def test_a_stale_group_that_still_runs_something_is_killed(cgroups: Cgroups) -> None:
    group = cgroups.create(Limits())
    name = group.name.replace(f"-{os.getpid()}-", "-1-")  # as if another process had created it
    stale = type(group)(
        cgroups.version, {kind: parent / name for kind, parent in cgroups.parents.items()}
    )
    stale.make(Limits())
    group.remove()
    sleeper = subprocess.Popen(["sleep", "600"])
    stale.attach(sleeper.pid)
    assert cgroups.remove_stale() >= 1
    assert sleeper.wait() == -9
    assert not any(directory.exists() for directory in stale.directories.values())


def test_groups_of_another_pid_namespace_are_left_alone(cgroups: Cgroups) -> None:
    parent = next(iter(cgroups.parents.values()))
    foreign = parent / "vel-sandbox-1-1-1-0"
    foreign.mkdir()
    try:
        cgroups.remove_stale()
        assert foreign.exists()
    finally:
        foreign.rmdir()


def test_a_hundred_commands_leave_no_group(place: Path, cgroups: Cgroups) -> None:
    box = limited(place, True)
    for _ in range(20):
        assert box.execute("true").success
    until(lambda: own_groups() == [])


def test_the_report_names_the_enforcement_of_each_limit(cgroups: Cgroups) -> None:
    means = {limit.limit: limit for limit in check_host().limits}
    group = f"cgroup v{cgroups.version}"
    assert means["memory"].by.startswith(group) == (MEMORY in cgroups.parents)
    assert means["processes"].by.startswith(group) == (PIDS in cgroups.parents)
    assert means["memory"].firm


def test_without_groups_the_report_names_weaker_limits() -> None:
    means = {limit.limit: limit for limit in enforced_limits(None)}
    assert (means["memory"].by, means["memory"].firm) == ("watchdog and rlimit", False)
    assert "Delegate=yes" in means["memory"].advice
    assert not means["cpu"].firm
    assert means["processes"].by == "rlimit"


def test_groups_that_do_not_work_are_named_and_not_used(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Cgroups(2, {MEMORY: place / "nowhere"})
    monkeypatch.setattr(probe, "_good", None)
    monkeypatch.setattr(probe, "find_cgroups", lambda: broken)
    report = check_host()
    assert report.usable
    assert report.command_cgroups is None
    assert "Control groups (version 2) were found but cannot be used" in report.warnings[0]
    assert BubblewrapSandbox(workspace_in(place).policy()).execute("true").success
    monkeypatch.undo()


def test_a_second_scan_finds_the_same() -> None:
    assert find_cgroups() == find_cgroups()
