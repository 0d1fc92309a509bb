"""`vel workspaces` lists, archives and removes, and changes no files without `--apply`."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from tests.support.tar_files import extract
from tests.velproject.command import Vel, say

pytestmark = pytest.mark.bubblewrap


def made(vel: Vel, name: str = "a.txt") -> Path:
    """Create a finished thread's workspace with one file."""
    before = {row["thread"] for row in vel.rows("workspaces", "list")}
    flags = vel.script(
        say("Writing.", ("write_file", {"path": name, "content": "hello"})), say("Done.")
    )
    result = vel(*flags, "write")
    assert result.returncode == 0, result.stderr
    (new,) = {row["thread"] for row in vel.rows("workspaces", "list")} - before
    return vel.data / "workspaces" / new


@pytest.mark.slow
def test_list_and_show_name_owner_and_size(vel: Vel) -> None:
    place = made(vel)
    (row,) = vel.rows("workspaces", "list")
    assert row["thread"] == place.name
    assert row["owner"]
    assert (row["files"], row["busy"], row["quiet_days"]) == (1, False, 0)
    (shown,) = vel.rows("workspaces", "show", place.name)
    assert shown["snapshots"] == 1
    assert shown["areas"]["workspace"] > 0
    assert vel("workspaces", "show", "../secret").returncode == 2


@pytest.mark.slow
def test_prune_shows_and_then_removes_old_workspaces(vel: Vel) -> None:
    old, young, busy = made(vel), made(vel), made(vel)
    for place in (old, busy):
        vel.execute(
            f"UPDATE agents_run SET ended_at = '2020-01-01' WHERE thread_id = '{place.name}'"
        )
    vel.execute(f"UPDATE agents_run SET status = 'waiting' WHERE thread_id = '{busy.name}'")
    dry = vel("workspaces", "prune", "--older-than", "30d")
    assert dry.returncode == 0
    assert f"would remove {old.name}" in dry.stdout
    assert "--apply" in dry.stderr
    assert old.exists()

    done = vel("workspaces", "prune", "--older-than", "30", "--archive", "--apply")

    assert done.returncode == 0, done.stderr
    assert f"removed {old.name}" in done.stdout
    assert [old.exists(), young.exists(), busy.exists()] == [False, True, True]
    assert not (vel.data / "snapshots" / old.name).exists()
    assert (vel.data / "snapshots" / young.name).exists()
    (archive,) = (vel.data / "archives").iterdir()
    with tarfile.open(archive) as opened:
        assert "workspace/a.txt" in opened.getnames()


@pytest.mark.slow
def test_orphans_are_found(vel: Vel) -> None:
    made(vel)
    orphan = vel.data / "workspaces" / "nobodys"
    (orphan / "workspace").mkdir(parents=True)
    left = vel.data / "workspaces" / ".removed-x-1"
    left.mkdir()
    owners = {row["thread"]: row["owner"] for row in vel.rows("workspaces", "list")}
    assert owners["nobodys"] is None
    # It may be the first file of a run that is just starting.
    assert vel("workspaces", "prune", "--apply").returncode == 0
    assert orphan.exists()
    assert not left.exists()


@pytest.mark.slow
def test_a_directory_of_the_callers_own_is_never_removed(vel: Vel) -> None:
    own = vel.data / "project"
    own.mkdir()
    if os.geteuid() == 0:
        os.chown(own, 65534, 65534)
    flags = vel.script(say("", ("write_file", {"path": "a", "content": "x"})), say("Done."))
    assert vel(*flags, "--workspace", str(own), "write").returncode == 0
    assert vel("workspaces", "prune", "--older-than", "0", "--apply").returncode == 0
    assert vel.rows("workspaces", "list") == []
    assert (own / "a").read_text() == "x"


@pytest.mark.slow
def test_archive_prints_where_it_is(vel: Vel, tmp_path: Path) -> None:
    place = made(vel)
    (place / "outputs" / "link").symlink_to("/etc/passwd")
    done = vel("workspaces", "archive", place.name, "--to", str(tmp_path / "there"))
    assert done.returncode == 0, done.stderr
    assert "skipped /sandbox/outputs/link" in done.stderr
    with tarfile.open(done.stdout.strip()) as opened:
        extract(opened, tmp_path / "out")
    assert (tmp_path / "out" / "workspace" / "a.txt").read_text() == "hello"
    assert (place / "workspace" / "a.txt").exists()
