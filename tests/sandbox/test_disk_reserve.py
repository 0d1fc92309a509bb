"""The free space that file tools and commands leave to the host."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox.backends import WorkspaceBackend
from sandbox.errors import StorageFull
from sandbox.policy import Limits
from tests.sandbox.limited import MIB, limited
from tests.sandbox.places import workspace_in

PATH = "/sandbox/workspace/a"
MORE_THAN_THE_DISK = 1 << 60
WRITE_AND_WAIT = "head -c {size} /dev/zero > new; sleep 20"


def free(place: Path) -> int:
    status = os.statvfs(place)
    return status.f_bavail * status.f_frsize


def test_file_tools_leave_the_reserve_free(place: Path) -> None:
    root = workspace_in(place).root
    with pytest.raises(StorageFull, match="the host's disk has only") as raised:
        WorkspaceBackend(root, limits=Limits(reserve=MORE_THAN_THE_DISK)).write_bytes(PATH, b"x")
    assert PATH in str(raised.value)
    assert not (root / "workspace/a").exists()
    WorkspaceBackend(root, limits=Limits(reserve=1)).write_bytes(PATH, b"x")
    assert (root / "workspace/a").read_text() == "x"


@pytest.mark.bubblewrap
@pytest.mark.control_groups
def test_a_command_that_uses_the_reserve_is_killed(place: Path, use_cgroups: bool) -> None:
    box = limited(place, use_cgroups, reserve=MORE_THAN_THE_DISK)
    result = box.execute(WRITE_AND_WAIT.format(size=10 * MIB))
    assert result.exit_code == 137, result
    assert "[killed: the host's disk has only" in result.stderr


@pytest.mark.bubblewrap
@pytest.mark.control_groups
def test_a_command_that_writes_little_may_use_the_reserve(place: Path, use_cgroups: bool) -> None:
    limited(place, use_cgroups).execute(f"head -c {10 * MIB} /dev/zero > old")
    box = limited(place, use_cgroups, reserve=MORE_THAN_THE_DISK)
    result = box.execute("echo 1 > small; rm old; sleep 1; ls")
    assert (result.exit_code, result.stdout) == (0, "small\n")


@pytest.mark.bubblewrap
@pytest.mark.control_groups
def test_a_command_may_write_while_more_than_the_reserve_is_free(
    place: Path, use_cgroups: bool
) -> None:
    box = limited(place, use_cgroups, reserve=free(place) // 10)
    result = box.execute(f"head -c {10 * MIB} /dev/zero > new; sleep 1; echo done")
    assert (result.exit_code, result.stdout) == (0, "done\n")
