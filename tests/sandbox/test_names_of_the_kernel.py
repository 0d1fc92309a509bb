"""Names of mount points and processes can contain any bytes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.linux.cgroups import Cgroups
from sandbox.processes import parent_of

ROOT = Path(__file__).resolve().parents[2]
READ_MOUNTS = """
from sandbox.linux.cgroups_search import find_cgroups, mounted_versions
print(mounted_versions())
find_cgroups()
"""
RENAME = """
open("/proc/self/comm", "wb").write(b"\\xff) \\xfe")
print(flush=True)
input()
"""


@pytest.fixture
def renamed() -> Iterator[int]:
    """The id of a child process with a name that is not UTF-8."""
    with subprocess.Popen(
        [sys.executable, "-c", RENAME], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield child.pid
        child.communicate(b"\n")
    assert child.returncode == 0


def test_the_parent_of_a_process_is_found(renamed: int) -> None:
    assert parent_of(renamed) == os.getpid()


def test_the_group_of_a_living_process_is_not_stale(renamed: int, tmp_path: Path) -> None:
    fields = Path(f"/proc/{renamed}/stat").read_bytes().rpartition(b")")[2].split()
    namespace = os.stat("/proc/self/ns/pid").st_ino
    group = tmp_path / f"vel-sandbox-{namespace}-{renamed}-{int(fields[19])}-0"
    group.mkdir()
    assert Cgroups(2, {"memory": tmp_path}).remove_stale() == 0
    assert group.exists()


@pytest.mark.bubblewrap
@pytest.mark.parametrize("name", [b"\xff", b"a\x0cb \x85c", "a\u2028b".encode(), b"a\\\\ b\n"])
def test_any_mount_point_leaves_control_groups_readable(tmp_path: Path, name: bytes) -> None:
    place = os.path.join(os.fsencode(tmp_path), name)
    os.mkdir(place)
    read = [sys.executable, "-c", READ_MOUNTS]
    expected = subprocess.run(read, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    done = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--mount"),
            *("sh", "-c", 'mount -t tmpfs test "$0" && exec "$@"', place, *read),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, expected), done.stderr
