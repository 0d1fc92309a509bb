"""What a person can do wrong: one clear line, exit code 1, and everything is as before."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from django.conf import settings

from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.backups.keys import passphrase_from
from agents.features.operations.backups.manifest import Manifest, StoredDatabase
from agents.features.operations.backups.prune import Keep, kept_names, prune_backups
from agents.features.operations.backups.repository import DirectoryRepository
from tests.agents.features.operations.backups.installation import (
    KEY,
    Installation,
    line_of,
    state_of,
)

NOW = "(julianday('now') - 2440587.5) * 86400.0"
HUGE = str(10**16)
SERVICE = 4242
"""The uid of the service."""


def create(installation: Installation, place: object, **environment: str) -> str:
    """Return the line of a backup that is refused."""
    done = installation.vel("backup", "create", "--to", str(place), **environment)
    return line_of(done)


def test_an_installation_that_has_never_started_has_nothing_to_back_up(
    installation: Installation,
) -> None:
    done = installation.new()("backup", "create", "--to", str(installation.base / "none"))
    assert "the database has no tables yet" in line_of(done)


def test_places_that_are_no_directory_for_backups_are_refused(installation: Installation) -> None:
    base = installation.base
    (base / "file").write_text("x")
    (base / "full").mkdir()
    (base / "full" / "mine.txt").write_text("x")
    before = state_of(base)
    assert "Cannot write to" in create(installation, base / "file")
    assert "has files, and no backups" in create(installation, base / "full")
    assert "does not exist. Create it first" in create(installation, base / "a" / "b")
    assert "is in the data directory" in create(installation, installation.vel.data / "backups")
    assert "is no place for backups" in create(installation, "ftp://example.org/x")
    assert "Name the place of the backups, or set VEL_BACKUP_TO" in line_of(
        installation.vel("backup", "create")
    )
    assert state_of(base) == before


def test_a_disk_without_room_is_noticed_before_anything_is_written(
    installation: Installation,
) -> None:
    line = create(installation, installation.repository, VEL_RESERVE_BYTES=HUGE)
    assert "MB left" in line
    assert "Make room" in line
    assert list((installation.repository / "snapshots").iterdir()) == []
    installation.backup()
    assert "MB left" in line_of(installation.verify(VEL_RESERVE_BYTES=HUGE))
    vel = installation.new(VEL_SECRET_KEY=KEY, VEL_RESERVE_BYTES=HUGE)
    assert "MB left" in line_of(installation.restore(vel))
    assert state_of(vel.data) == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_the_account_of_the_service_can_use_what_root_has_backed_up_and_restored(
    installation: Installation,
) -> None:
    os.chown(installation.vel.data, SERVICE, SERVICE)
    installation.repository.mkdir()
    os.chown(installation.repository, SERVICE, SERVICE)
    installation.backup()
    assert {path.stat().st_uid for path in installation.repository.rglob("*")} == {SERVICE}
    assert (installation.vel.data / "backup-status.json").stat().st_uid == SERVICE
    vel = installation.new(VEL_SECRET_KEY=KEY)
    os.chown(vel.data, SERVICE, SERVICE)
    assert installation.restore(vel).returncode == 0
    for name in ("vel.sqlite3", "restore.lock"):
        assert (vel.data / name).stat().st_uid == SERVICE


def test_keys_need_a_passphrase_that_is_long_enough(
    installation: Installation, tmp_path: Path
) -> None:
    file = tmp_path / "passphrase"
    file.write_text("short\n")
    place = str(installation.repository)
    to = ("backup", "create", "--to", place, "--include-keys")
    assert "has 5 characters" in line_of(installation.vel(*to, "--passphrase-file", str(file)))
    assert "no terminal to ask" in line_of(installation.vel(*to))
    missing = line_of(installation.vel(*to, "--passphrase-file", str(tmp_path / "none")))
    assert "No such file" in missing
    assert not installation.repository.exists()


def test_a_passphrase_that_is_not_utf_8_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEL_BACKUP_PASSPHRASE", "long enough, and \udcff")
    with pytest.raises(BackupRefused, match="VEL_BACKUP_PASSPHRASE is not UTF-8"):
        passphrase_from(None)


def test_an_installation_in_use_is_not_replaced(installation: Installation) -> None:
    installation.backup()
    vel = installation.restored()
    file = vel.data / "vel.sqlite3"
    before = state_of(vel.data)
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute('SELECT * FROM "
            "agents_run').fetchone(); print('open', flush=True); sys.stdin.read()",
            str(file),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        line = line_of(installation.restore(vel, "--replace"))
        assert f"process {other.pid}" in line
        other.communicate()
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(
            "INSERT INTO agents_serverprocess (name, kind, host, pid, version, started_at,"
            " seen_at, driven, capacity, streams, limits, counters) VALUES ('w', 'worker', 'here',"
            f" 4242, '', 0, {NOW}, 0, 1, 0, '', '')"
        )
    line = line_of(installation.restore(vel, "--replace"))
    assert "the worker process 4242 on here reported" in line
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("DELETE FROM agents_serverprocess WHERE name = 'w'")
    after = state_of(vel.data)
    assert after.keys() == before.keys()
    assert {path for path in after if after[path] != before[path]} <= {"vel.sqlite3"}


def test_a_damaged_database_can_be_replaced(installation: Installation) -> None:
    installation.backup()
    vel = installation.new(VEL_SECRET_KEY=KEY)
    (vel.data / "vel.sqlite3").write_bytes(b"no database " * 1000)
    line = line_of(installation.restore(vel))
    assert "cannot be read" in line
    assert installation.restore(vel, "--replace").returncode == 0
    (kept,) = vel.data.glob("vel.sqlite3.before-restore-*")
    assert kept.read_bytes() == b"no database " * 1000
    assert vel.count("agents_run") > 0


def test_a_restore_that_fails_late_changes_nothing(installation: Installation) -> None:
    installation.backup()
    vel = installation.restored()
    before = state_of(vel.data)
    installation.change_manifest(
        lambda body: body["database"]["tables"]["auth_user"].update(rows=99), KEY
    )
    assert "The table auth_user differs" in line_of(installation.restore(vel, "--replace"))
    assert state_of(vel.data) == before


def test_a_backup_that_lacks_a_file_of_a_row_is_refused(installation: Installation) -> None:
    installation.backup()
    installation.change_manifest(
        lambda body: body.update(
            files=[each for each in body["files"] if "/manifests/" not in each["path"]]
        ),
        KEY,
    )
    assert "which a row names" in line_of(installation.verify())


def test_old_backups_are_deleted_and_the_others_stay_complete(installation: Installation) -> None:
    names = []
    for number in range(3):
        (installation.vel.data / "workspaces" / "x").mkdir(exist_ok=True)
        (installation.vel.data / "workspaces" / "x" / "file").write_text(f"content {number}")
        names.append(installation.backup()["name"])
    place = str(installation.repository)
    objects = sum(1 for path in installation.repository.rglob("objects/*/*"))
    keep = ("--keep-daily", "1", "--keep-weekly", "0", "--keep-monthly", "0")
    shown = installation.vel("backup", "prune", "--from", place, *keep)
    assert "Nothing was deleted" in shown.stdout
    assert sum(1 for path in installation.repository.rglob("objects/*/*")) == objects
    (done,) = installation.vel.rows("backup", "prune", "--from", place, *keep, "--apply")
    assert (done["kept"], done["deleted"], done["objects"]) == (names[2:], names[:2], 2)
    assert installation.verify().returncode == 0
    assert "There is no backup" in line_of(installation.verify(names[0]))


def test_each_host_keeps_the_last_backup_of_a_day_in_a_common_place(tmp_path: Path) -> None:
    repository = DirectoryRepository(tmp_path / "backups")
    repository.prepare()
    hosts = {"one": "1" * 32, "two": "2" * 32, "old": ""}
    made = [(hour, host) for hour, host in enumerate(["one", "two", "one", "two", "old", "old"])]
    names = [f"20261129T{hour:02}0000Z-00000000" for hour, _ in made]
    database = StoredDatabase("sqlite", "3", "0" * 64, 0, {}, [])
    for name, (_, host) in zip(names, made, strict=True):
        manifest = Manifest(name, "", "", database, [], [], data_directory=hosts[host])
        repository.keep_manifest(name, manifest.signed(settings.SECRET_KEY))
    done = prune_backups(repository, Keep(1, 0, 0), apply=True)
    assert done.deleted == [names[0], names[1], names[4]]
    assert repository.names() == [names[2], names[3], names[5]]


def test_nothing_is_deleted_while_a_manifest_cannot_be_read(installation: Installation) -> None:
    first = installation.backup()["name"]
    manifest = installation.manifest
    installation.backup()
    manifest.write_text("{")
    before = state_of(installation.repository)
    place = str(installation.repository)
    line = line_of(installation.vel("backup", "prune", "--from", place, "--apply"))
    assert f"vel backup delete {first}" in line
    assert state_of(installation.repository) == before
    assert installation.vel("backup", "delete", first, "--from", place).returncode == 0
    assert installation.verify().returncode == 0


def test_the_last_backups_of_days_weeks_and_months_stay() -> None:
    names = [
        f"2026{month:02}{day:02}T{hour:02}0000Z-00000000"
        for month in (1, 2, 3)
        for day in range(1, 29)
        for hour in (1, 13)
    ]
    assert kept_names(names, Keep(0, 0, 0)) == {"20260328T130000Z-00000000"}
    assert kept_names(names, Keep(3, 0, 0)) == {
        f"202603{day}T130000Z-00000000" for day in (26, 27, 28)
    }
    assert kept_names(names, Keep(0, 2, 0)) == {
        "20260328T130000Z-00000000",  # a Saturday, and the Sunday before
        "20260322T130000Z-00000000",
    }
    assert kept_names(names, Keep(0, 0, 12)) == {
        f"2026{month:02}28T130000Z-00000000" for month in (1, 2, 3)
    }
