"""A disk that becomes full: one clear line, no remains, and everything is as before."""

from __future__ import annotations

import os
import shutil
import subprocess
from hashlib import sha256
from itertools import count
from pathlib import Path

import pytest

from agents.features.operations.backups.create import _Writer
from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.backups.repository import DirectoryRepository
from agents.features.operations.backups.source_tree import SourceTree
from tests.agents.features.operations.backups.installation import (
    KEY,
    Installation,
    line_of,
    state_of,
)
from tests.support.small_disk import MB, SmallDisk, small_disk
from tests.velproject.command import DEADLINE, Vel
from tests.velproject.forked import run_forked

# Small disks need user namespaces, as bubblewrap does.
pytestmark = pytest.mark.bubblewrap


def run(disk: SmallDisk, vel: Vel, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `vel` where it sees the disk. Without a reserve, it starts on little room."""
    return run_forked(
        arguments,
        stdin="",
        environment=vel.env(VEL_RESERVE_BYTES="0"),
        cwd=Path("/"),
        timeout=DEADLINE,
        namespaces_of=disk.holder,
    )


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def test_a_backup_onto_a_full_disk_leaves_the_earlier_backups(
    installation: Installation, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "small", 40 * MB) as disk:
        place = str(disk.place / "backups")
        create = ("backup", "create", "--to", place)
        assert run(disk, installation.vel, *create).returncode == 0
        before = state_of(disk.seen / "backups")
        (installation.vel.data / "workspaces" / "new.bin").write_bytes(os.urandom(1_000_000))
        disk.fill(leaving=200_000)
        line = line_of(run(disk, installation.vel, *create))
        assert line.startswith(f"vel: Cannot write to {place}: No space left on device.")
        assert line.endswith("Make room there, or name another directory.")
        after = state_of(disk.seen / "backups")
        names = {name for name in after if after[name] is not None}
        assert names == {name for name in before if before[name] is not None}
        assert not [name for name in os.listdir(installation.vel.data) if name.startswith(".")]
        disk.clear()
        assert run(disk, installation.vel, *create).returncode == 0
        assert run(disk, installation.vel, "backup", "verify", "--from", place).returncode == 0
        # Of this mount only: an ordinary account cannot change the options of the file system.
        remount = [*disk.inside, "mount", "-o", "remount,bind,ro", str(disk.place)]
        subprocess.run(remount, check=True)
        # Its object belongs into a directory that exists, so the object itself cannot be created.
        known = {path.name for path in (disk.seen / "backups" / "objects").iterdir()}
        text = next(str(n) for n in count() if sha256(str(n).encode()).hexdigest()[:2] in known)
        (installation.vel.data / "workspaces" / "new.txt").write_text(text)
        line = line_of(run(disk, installation.vel, *create))
        assert line == f"vel: Cannot write to {place}: Read-only file system."
        assert run(disk, installation.vel, "backup", "verify", "--from", place).returncode == 0


def test_a_data_directory_that_becomes_full_stops_the_backup(
    installation: Installation, tmp_path: Path
) -> None:
    database = os.path.getsize(installation.old.file)
    size = size_of(installation.vel.data)
    with small_disk(tmp_path / "small", 2 * size + 2 * database + 30 * MB) as disk:
        shutil.copytree(installation.vel.data, disk.seen / "data")
        vel = Vel(
            disk.place / "data",
            {
                **installation.vel.environment,
                "DATABASE_URL": f"sqlite:///{disk.place}/data/site.sqlite3",
            },
        )
        # The copy of the database fits, and that of this file does not.
        (disk.seen / "data" / "workspaces" / "large").write_bytes(os.urandom(8 * MB))
        disk.fill(leaving=2 * database + 2 * MB)
        before = state_of(disk.seen / "data")
        for name in ("backup-status.json", "backup-name"):
            before.pop(name, None)  # of another test's backup
        line = line_of(run(disk, vel, "backup", "create", "--to", str(installation.repository)))
        assert line == (
            f"vel: A file in {disk.place}/data cannot be copied: No space left on device. If the "
            "disk is full, make room. Then try again."
        )
        after = state_of(disk.seen / "data")
        assert after.pop("backup-status.json") is not None
        after.pop("backup-name")
        assert after == before
    assert list((installation.repository / "snapshots").iterdir()) == []


def test_a_small_file_is_not_left_out_because_the_disk_is_full(tmp_path: Path) -> None:
    (tmp_path / "workspaces").mkdir()
    (tmp_path / "workspaces" / "small").write_text("small")
    tree = SourceTree(tmp_path)
    (found,) = tree.files()
    repository = DirectoryRepository(tmp_path / "backups")
    repository.prepare()
    with small_disk(tmp_path / "disk", MB) as disk:
        writer = _Writer(repository, disk.seen, {})
        assert writer.add(tree, found) is not None
        disk.fill()
        (tmp_path / "workspaces" / "small").write_text("other")
        with pytest.raises(BackupRefused, match="cannot be copied: No space left on device"):
            writer.add(tree, found)
    assert tree.skipped == {}


def test_a_restore_onto_a_disk_that_becomes_full_leaves_it_empty(
    installation: Installation, tmp_path: Path
) -> None:
    # Each small file takes a page, which the sizes in the manifest do not have.
    directory = installation.vel.data / "workspaces" / "many"
    directory.mkdir()
    for number in range(1000):
        (directory / str(number)).write_text(str(number))
    needed = size_of(installation.vel.data / "workspaces")
    needed += size_of(installation.vel.data / "snapshots") + os.path.getsize(installation.old.file)
    with small_disk(tmp_path / "small", needed + 2 * MB) as disk:
        (disk.seen / "data").mkdir(mode=0o711)
        vel = Vel(disk.place / "data", {"VEL_SECRET_KEY": KEY, "VEL_SCRIPTS_DIR": "/"})
        place = str(installation.repository)
        # The accounts in the namespace of an ordinary account have other numbers.
        assert run(disk, installation.vel, "backup", "create", "--to", place).returncode == 0
        line = line_of(run(disk, vel, "restore", "latest", "--from", place))
        assert line == (
            f"vel: The disk of {vel.data} became full during the restore. Make room, or use "
            "another disk. Everything is as before."
        )
        assert state_of(disk.seen / "data") == {}


@pytest.mark.skipif(os.geteuid() == 0, reason="needs an ordinary account")
def test_accounts_that_do_not_exist_in_a_container_are_named(
    installation: Installation, tmp_path: Path
) -> None:
    installation.backup()
    with small_disk(tmp_path / "small", 100 * MB) as disk:
        (disk.seen / "data").mkdir(mode=0o711)
        vel = Vel(disk.place / "data", {"VEL_SECRET_KEY": KEY, "VEL_SCRIPTS_DIR": "/"})
        line = line_of(run(disk, vel, "restore", "latest", "--from", str(installation.repository)))
        assert line.startswith(f"vel: The files belong to the account {os.geteuid()} and the group")
        assert [path.name for path in (disk.seen / "data").iterdir()] == ["restore.lock"]
