"""A backup restores a whole installation, in which nothing starts by itself."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.agents.features.operations.backups.installation import (
    KEY,
    Installation,
    line_of,
    state_of,
    whole_runs,
)

PASSPHRASE = "correct horse battery staple"


def test_a_restored_installation_has_the_same_rows_and_files(installation: Installation) -> None:
    before = whole_runs(Path(installation.old.file))
    assert len(before) > 5
    workspaces = state_of(installation.vel.data / "workspaces")
    snapshots = state_of(installation.vel.data / "snapshots")
    assert any(content is not None for content in workspaces.values())
    installation.backup()
    vel = installation.restored()
    assert whole_runs(vel.data / "vel.sqlite3") == before
    assert state_of(vel.data / "workspaces") == workspaces
    restored = state_of(vel.data / "snapshots")
    assert {path for path in snapshots if not path.endswith("lock")} == set(restored)
    assert vel("doctor").returncode in (0, 1)
    memory = "SELECT path, content FROM memory_memoryfile ORDER BY id"
    assert [tuple(row.values()) for row in vel.stored(memory)] == installation.old.rows(memory)
    assert (vel.data / "vel.sqlite3").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in vel.data.iterdir() if path.name.startswith(".")) == []


def test_runs_that_were_working_wait_for_a_person_and_nothing_starts(
    installation: Installation,
) -> None:
    working = installation.old.rows(
        "SELECT id FROM agents_run WHERE status IN ('queued', 'running', 'pending')"
    )
    assert working
    assert installation.old.rows("SELECT count(*) FROM vel_schedules_schedule WHERE is_enabled")
    assert installation.old.rows("SELECT count(*) FROM django_session")[0][0] > 0
    installation.backup()
    vel = installation.restored()
    for (run,) in working:
        assert vel.value(f"SELECT executor FROM agents_run WHERE id = '{run}'") == "restored"
    for table in ("vel_schedules_schedule", "vel_inbound_webhooks_inboundwebhook"):
        assert vel.count(table) == 1
        assert vel.value(f"SELECT count(*) FROM {table} WHERE is_enabled") == 0
    assert vel.value("SELECT next_at FROM vel_schedules_schedule") is None
    assert vel.count("django_session") == vel.count("django_q_ormq") == 0
    (entry,) = vel.stored("SELECT * FROM agents_auditentry WHERE action = 'backup.restored'")
    assert json.loads(entry["changes"])["triggers"] == [0, 2]
    assert vel.value("SELECT count(*) FROM agents_apitoken WHERE revoked_at IS NULL") == 1


def test_tokens_can_be_revoked_at_the_restore(installation: Installation) -> None:
    installation.backup()
    vel = installation.restored("--revoke-tokens")
    assert vel.count("agents_apitoken") == 1
    assert vel.value("SELECT count(*) FROM agents_apitoken WHERE revoked_at IS NULL") == 0


def test_a_parked_run_continues_after_the_restore(installation: Installation) -> None:
    installation.backup()
    vel = installation.restored()
    (request,) = vel.rows("approvals", "list")
    assert request["id"] == installation.old.parked
    assert vel("approvals", "decide", request["id"], "approve").returncode == 0
    resumed = vel("runs", "resume", request["run"])
    assert (resumed.returncode, resumed.stdout) == (0, "Done.\n"), resumed.stderr
    whole_runs(vel.data / "vel.sqlite3")


def test_a_second_backup_stores_only_what_has_changed(installation: Installation) -> None:
    first = installation.backup()
    assert first["new_objects"] > 3
    again = installation.backup()
    assert (again["new_objects"], again["files"]) == (0, first["files"])
    (workspace,) = list((installation.vel.data / "workspaces").iterdir())[:1]
    (workspace / "workspace" / "new.txt").write_text("something new")
    third = installation.backup()
    assert (third["new_objects"], third["files"]) == (1, first["files"] + 1)
    names = [row["name"] for row in _listed(installation)]
    assert names == [third["name"], again["name"], first["name"]]
    assert installation.verify().returncode == 0


def _listed(installation: Installation) -> list[dict[str, str]]:
    return installation.vel.rows("backup", "list", "--from", str(installation.repository))


def test_after_a_lost_disk_the_passphrase_brings_the_keys_back(
    installation: Installation, tmp_path: Path
) -> None:
    file = tmp_path / "passphrase"
    file.write_text(PASSPHRASE + "\n")
    installation.backup("--include-keys", "--passphrase-file", str(file))
    stored = b"".join(path.read_bytes() for path in installation.repository.rglob("*.json"))
    assert installation.vel.environment["VEL_SECRET_KEY"].encode() not in stored
    vel = installation.new()
    line = line_of(installation.restore(vel))
    assert "give the passphrase of its keys" in line
    before = state_of(vel.data)
    wrong = tmp_path / "wrong"
    wrong.write_text("another passphrase")
    line = line_of(installation.restore(vel, "--passphrase-file", str(wrong)))
    assert line.startswith("vel: The passphrase is wrong")
    assert state_of(vel.data) == before
    done = installation.restore(vel, "--passphrase-file", str(file))
    assert done.returncode == 0, done.stderr
    key = vel.data / "secret_key"
    assert key.read_text() == installation.vel.environment["VEL_SECRET_KEY"]
    assert key.stat().st_mode & 0o777 == 0o600
    whole_runs(vel.data / "vel.sqlite3")


def test_a_missing_data_directory_is_made(installation: Installation) -> None:
    installation.backup()
    vel = installation.new(VEL_SECRET_KEY=KEY)
    vel.data.rmdir()
    place = str(installation.repository)
    done = vel("restore", "latest", "--from", place, cwd=installation.base)
    assert done.returncode == 0, done.stderr
    assert vel.data.stat().st_mode & 0o777 == 0o711
    whole_runs(vel.data / "vel.sqlite3")


def test_replace_keeps_the_old_installation(installation: Installation) -> None:
    installation.backup()
    vel = installation.restored()
    shutil.rmtree(vel.data / "workspaces")
    with closing(sqlite3.connect(vel.data / "vel.sqlite3")) as database, database:
        database.execute("UPDATE auth_user SET first_name = 'changed'")
    line = line_of(installation.restore(vel))
    assert "not empty" in line
    assert "--replace" in line
    done = installation.restore(vel, "--replace", "--json")
    assert done.returncode == 0, done.stderr
    assert vel.value("SELECT count(*) FROM auth_user WHERE first_name = 'changed'") == 0
    kept = [Path(place) for place in json.loads(done.stdout)["kept"]]
    database_file = next(place for place in kept if place.name.startswith("vel.sqlite3"))
    with closing(sqlite3.connect(database_file)) as database:
        query = "SELECT count(*) > 0 FROM auth_user WHERE first_name = 'changed'"
        assert database.execute(query).fetchone() == (1,)
    assert any(
        path.name == "snapshots" for place in kept if place.is_dir() for path in place.iterdir()
    )


def test_an_open_call_with_an_effect_counts_as_started(installation: Installation) -> None:
    old = installation.old
    ((run,),) = old.rows("SELECT run_id FROM agents_toolcall WHERE tool = 'write_file' LIMIT 1")
    old.change("UPDATE agents_run SET status = 'running' WHERE id = ?", [run])
    old.change(
        "UPDATE agents_toolcall SET status = 'pending', started_at = NULL, finished_at = NULL,"
        " result = '' WHERE run_id = ? AND tool = 'write_file'",
        [run],
    )
    installation.backup()
    vel = installation.restored()
    # The engine closes it as interrupted when a person resumes the run, and does not make it.
    query = f"SELECT status, effect FROM agents_toolcall WHERE run_id = '{run}'"
    writes = [row["status"] for row in vel.stored(query) if row["effect"] != "read"]
    assert writes
    assert set(writes) == {"started"}
