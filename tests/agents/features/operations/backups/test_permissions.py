"""Directories without permission: one clear line, and everything is as before."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agents.features.operations.backups.installation import (
    KEY,
    Installation,
    line_of,
    state_of,
)
from tests.support.permissions import bound_by_permissions
from tests.velproject.command import DEADLINE, Vel


def run(vel: Vel, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `vel` in a process that permission bits bind."""
    return subprocess.run(
        [*bound_by_permissions(), *vel.command(*arguments)],
        capture_output=True,
        text=True,
        env=vel.env(),
        cwd="/",
        timeout=DEADLINE,
        check=False,
    )


def create(installation: Installation, place: Path) -> subprocess.CompletedProcess[str]:
    return run(installation.vel, "backup", "create", "--to", str(place))


def restore(installation: Installation, vel: Vel, *more: str) -> subprocess.CompletedProcess[str]:
    return run(vel, "restore", "latest", "--from", str(installation.repository), *more)


@contextmanager
def closed(*directories: Path) -> Iterator[None]:
    """Take the permission to write away until the end of the block."""
    modes = {each: each.stat().st_mode for each in directories}
    for each in directories:
        each.chmod(0o500)
    try:
        yield
    finally:
        for each, mode in modes.items():
            each.chmod(mode)


def remains(vel: Vel) -> list[str]:
    return [path.name for path in vel.data.iterdir() if path.name.startswith(".")]


def test_a_backup_into_a_directory_without_permission_is_refused(
    installation: Installation,
) -> None:
    place = installation.base / "closed"
    place.mkdir()
    with closed(place):
        for each in (place, place / "backups"):
            line = line_of(create(installation, each))
            assert line.startswith(f"vel: Cannot write to {each}: Permission denied.")
            assert line.endswith("Change its owner, or name another directory.")
    assert state_of(place) == {}
    assert remains(installation.vel) == []


def test_a_backup_into_a_place_that_became_read_only_leaves_the_earlier_backups(
    installation: Installation,
) -> None:
    installation.backup()
    before = state_of(installation.repository)
    (installation.vel.data / "workspaces" / "new.txt").write_text("new")
    directories = [path for path in installation.repository.rglob("*") if path.is_dir()]
    with closed(installation.repository, *directories):
        line = line_of(create(installation, installation.repository))
        assert "Permission denied. Change its owner" in line
        assert (
            run(
                installation.vel, "backup", "verify", "--from", str(installation.repository)
            ).returncode
            == 0
        )
        pruned = run(
            installation.vel,
            *("backup", "delete", installation.manifest.stem),
            *("--from", str(installation.repository)),
        )
        assert "Permission denied" in line_of(pruned)
    assert state_of(installation.repository) == before
    assert remains(installation.vel) == []


def test_a_restore_into_a_data_directory_without_permission_is_refused(
    installation: Installation,
) -> None:
    installation.backup()
    vel = installation.new(VEL_SECRET_KEY=KEY)
    with closed(vel.data):
        line = line_of(restore(installation, vel))
    assert line == (
        f"vel: Cannot write to {vel.data}: Permission denied. Change its owner, or name another "
        "directory."
    )
    assert state_of(vel.data) == {}


def test_a_restore_that_cannot_rename_a_directory_puts_the_others_back(
    installation: Installation,
) -> None:
    installation.backup()
    vel = installation.restored()
    before = state_of(vel.data)
    with closed(vel.data / "snapshots"):  # a rename into another directory changes its `..`
        line = line_of(restore(installation, vel, "--replace"))
    assert "no permission to write" in line
    assert str(vel.data / "snapshots") in line
    assert state_of(vel.data) == before
    assert remains(vel) == []


@pytest.mark.slow
def test_a_file_that_vel_may_not_read_is_left_out_and_counted(installation: Installation) -> None:
    file = installation.vel.data / "workspaces" / "closed.txt"
    file.write_text("closed")
    file.chmod(0)
    done = create(installation, installation.repository)
    assert done.returncode == 0, done.stderr
    assert "left out 1 names: no permission" in done.stderr
