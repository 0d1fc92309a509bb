"""Disk bombs: the directories that commands can write have a quota."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.backends import WorkspaceBackend
from sandbox.linux import watchdog_disk
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.linux.quota import TreeScan
from sandbox.policy import Limits
from tests.sandbox.limited import MARKER, MIB, assert_nothing_is_left, limited
from tests.sandbox.places import AS_ROOT, workspace_in

pytestmark = [pytest.mark.bubblewrap, pytest.mark.control_groups]

DISK = 24 * MIB
FILES = 600
PREPARE = """
import os, signal
block = b"x" * (1 << 20)
def fill(path, blocks, flags=os.O_CREAT | os.O_WRONLY):
    descriptor = os.open(path, flags)
    for _ in range(blocks):
        os.write(descriptor, block)
    return descriptor
def hold():
    print("full", flush=True)
    signal.pause()
"""
BOMBS = {
    "one file": "fill('bomb', 40)",
    "many files": "for n in range(100): os.close(fill(f'bomb{n}', 1))",
    "many areas": "for d in 'workspace', 'outputs', 'shared': fill(f'/sandbox/{d}/bomb', 12)",
    "holes that are filled": "os.truncate(fill('bomb', 0), 400 << 20)\nfill('bomb', 40)",
    "deleted files that are open": (
        "kept = []\n"
        "for n in range(4):\n    kept.append(fill(f'bomb{n}', 10)); os.unlink(f'bomb{n}')"
    ),
    "a file without a name": "kept = fill('.', 40, os.O_TMPFILE | os.O_RDWR)",
    "a closed directory": ("os.mkdir('dark')\nfill('dark/bomb', 40)\nos.chmod('dark', 0)"),
    "a closed area": "fill('bomb', 40)\nos.chmod('.', 0)",
    "a directory with a name that is no text": "os.mkdir(b'\\xff')\nfill(b'\\xff/bomb', 40)",
    "empty files": "for n in range(1500): os.close(os.open(f'bomb{n}', os.O_CREAT))",
    "directories": "for n in range(1500): os.mkdir(f'bomb{n}')",
    "hard links": "fill('bomb', 0)\nfor n in range(1500): os.link('bomb', f'bomb{n}')",
    "symbolic links": "for n in range(1500): os.symlink('bomb', f'bomb{n}')",
    "deep directories": "for n in range(300): os.mkdir('d'); os.chdir('d')",
}


def quota(place: Path, use_cgroups: bool, **others: float | None) -> BubblewrapSandbox:
    return limited(place, use_cgroups, **{"disk": DISK, "files": FILES, **others})


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_disk_bomb_is_killed(place: Path, use_cgroups: bool, bomb: str) -> None:
    result = (
        quota(place, use_cgroups)
        .start(["python3", "-c", f"{PREPARE}{bomb}\nhold()"], marker=MARKER)
        .wait()
    )
    assert not result.timed_out, "it could hold all that"
    assert result.exit_code == 137, result
    assert "[killed: " in result.stderr
    assert "in the workspace]" in result.stderr or "nested deeper than" in result.stderr
    assert_nothing_is_left()


def large_deleted_files() -> set[int]:
    """Return the inodes of large files without a name that this process has open."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            status = descriptor.stat()
            if status.st_nlink == 0 and status.st_size >= MIB:
                found.add(status.st_ino)
    return found


def test_no_process_keeps_deleted_files_open(place: Path) -> None:
    bomb = f"{PREPARE}{BOMBS['deleted files that are open']}\nhold()"
    before = large_deleted_files()
    result = quota(place, True).start(["python3", "-c", bomb], marker=MARKER).wait()
    assert result.exit_code == 137
    assert large_deleted_files() <= before
    assert_nothing_is_left()


def test_files_of_a_short_command_are_reported_at_its_end(place: Path) -> None:
    result = quota(place, True).execute("head -c 40000000 /dev/zero > big; echo done")
    assert "more than 24 MiB of files in the workspace" in result.stderr


def test_holes_and_hard_links_use_no_space(place: Path) -> None:
    result = quota(place, True).execute(
        "truncate -s 400M hole; head -c 15000000 /dev/zero > a; ln a b; ln a c; sleep 0.2"
    )
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_full_workspace_can_be_cleaned_but_not_filled(place: Path, use_cgroups: bool) -> None:
    full = workspace_in(place).root / "workspace/old"
    limited(place, use_cgroups, disk=None).execute("head -c 40000000 /dev/zero > old")
    assert full.stat().st_size == 40_000_000
    box = quota(place, use_cgroups)
    assert "delete some" in box.execute("true").stderr
    growing = box.execute_python(f"{PREPARE}fill('more', 10)\nhold()")
    assert growing.exit_code == 137
    cleaning = box.execute("rm old more; sleep 0.2; echo clean")
    assert (cleaning.stdout, cleaning.stderr) == ("clean\n", "")
    assert box.execute("head -c 1000000 /dev/zero > new").success


def test_only_added_files_count_in_the_callers_own_directory(place: Path) -> None:
    policy = workspace_in(place).policy(timeout=20)
    limited(place, True, disk=None).execute("head -c 40000000 /dev/zero > old")
    mounts = tuple(replace(mount, foreign=mount.writable) for mount in policy.mounts)
    limits = replace(Limits(), disk=DISK)
    box = BubblewrapSandbox(replace(policy, mounts=mounts, limits=limits))
    result = box.execute("head -c 15000000 /dev/zero > new; sleep 0.2")
    assert (result.exit_code, result.stderr) == (0, "")
    # Many commands cannot exceed it either.
    assert box.execute_python(f"{PREPARE}fill('more', 15)\nhold()").exit_code == 137
    assert "delete some" in box.execute("true").stderr


@pytest.mark.slow
def test_a_tree_that_takes_long_to_count_is_watched_too(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first count continues while the command runs."""
    monkeypatch.setattr(watchdog_disk, "_FIRST_COUNT", 0.0)
    old = workspace_in(place).root / "workspace/old"
    limited(place, True, files=None).execute_python(
        "import os\nos.mkdir('old')\n"
        "for n in range(2_000): os.close(os.open(f'old/{n}', os.O_CREAT))"
    )
    assert sum(1 for _ in old.iterdir()) == 2_000
    box = quota(place, True, files=3_750)
    assert box.execute_python(f"{PREPARE}fill('bomb', 40)\nhold()").exit_code == 137
    files = "for n in range(2_250): os.close(os.open(f'bomb{n}', os.O_CREAT))"
    assert box.execute_python(f"{PREPARE}{files}\nhold()").exit_code == 137


def test_a_count_follows_no_link_and_survives_swaps(place: Path) -> None:
    (place / "secret").mkdir()
    (place / "secret/big").write_bytes(b"x" * 5_000_000)
    tree = place / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(place / "secret")
    (tree / "file").write_bytes(b"x" * 4096)
    scan = TreeScan([tree])
    assert scan.run(60)
    assert (scan.usage.size, scan.usage.files) == (4096, 2)
    (tree / "turned").mkdir()
    scan = TreeScan([tree])
    while not scan.usage.files:
        scan.run(0)
        next(scan._walk, True)
    (tree / "turned").rmdir()
    (tree / "turned").symlink_to(place / "secret")
    assert scan.run(60)
    assert scan.usage.size < 100_000


def test_host_tools_are_refused_at_the_quota(place: Path) -> None:
    workspace = workspace_in(place)
    files = WorkspaceBackend(
        workspace.root, workspace.uid, workspace.gid, limits=Limits(disk=1_000_000, files=200)
    )
    assert "error" not in files.write_file("/sandbox/outputs/a", "x" * 500_000)
    refused = files.write_file("/sandbox/workspace/b", "x" * 600_000)
    assert "may contain 976.6 KiB" in refused["error"]
    assert not (workspace.root / "workspace/b").exists()
    (workspace.root / "outputs/a").unlink()
    assert "error" not in files.write_file("/sandbox/workspace/b", "x" * 600_000)


@pytest.mark.parametrize("size", [1, 40_000])
def test_many_writes_of_host_tools_stay_below_the_quota(place: Path, size: int) -> None:
    workspace = workspace_in(place)
    limits = Limits(disk=1_000_000, files=100)
    files = WorkspaceBackend(workspace.root, workspace.uid, workspace.gid, limits=limits)
    results = [files.write_file(f"/sandbox/workspace/{n}", "x" * size) for n in range(120)]
    assert "no room left" in results[-1]["error"]
    held = TreeScan([workspace.root / "workspace"])
    assert held.run(60)
    assert held.usage.size <= 1_000_000
    assert held.usage.files <= 100


def test_the_callers_own_directory_is_not_counted(place: Path) -> None:
    (place / "mine").mkdir()
    (place / "mine/big").write_bytes(b"x" * 2_000_000)
    workspace = workspace_in(place)
    files = WorkspaceBackend(
        workspace.root, directories={"workspace": place / "mine"}, limits=Limits(disk=1_000_000)
    )
    assert "error" not in files.write_file("/sandbox/workspace/a", "x")


@pytest.mark.skipif(AS_ROOT, reason="needs an ordinary account")
def test_a_directory_that_its_owner_closed_is_opened(place: Path) -> None:
    (place / "closed").mkdir()
    (place / "closed/file").write_bytes(b"x" * 100_000)
    (place / "closed").chmod(0o300)
    scan = TreeScan([place])
    assert scan.run(60)
    assert scan.usage.size >= 100_000
