"""Scheduled backups, and what `vel doctor` says about the last one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from agents.features.operations.jobs import RETRY_SECONDS, BackupStarter
from agents.models import BackgroundJob
from agents.models.database_clock import database_now
from tests.agents.features.operations.backups.installation import KEY
from tests.velproject.command import Vel, new_vel


def doctor(vel: Vel, **environment: str) -> str:
    """Return the lines of `vel doctor` about backups."""
    lines = vel("doctor", **environment).stdout.splitlines()
    return "\n".join(line for line in lines if "backups" in line)


@pytest.mark.django_db(transaction=True)
def test_one_worker_makes_a_due_backup_and_deletes_old_ones(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = tmp_path / "backups"
    settings.VEL = {**settings.VEL, "BACKUP_TO": str(place), "BACKUP_EVERY": 1.0}
    with new_vel(VEL_SECRET_KEY=KEY, VEL_BACKUP_TO=str(place), VEL_BACKUP_EVERY="1") as vel:
        assert "none was made" in doctor(vel)
        for name, value in vel.env(DATABASE_URL="", DJANGO_SETTINGS_MODULE="").items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("DJANGO_SETTINGS_MODULE")
        first, second = BackupStarter(), BackupStarter()
        first.look()
        second.look()
        assert second._thread is None
        assert first._thread is not None
        first._thread.join()
        assert len(list((place / "snapshots").iterdir())) == 1
        assert BackgroundJob.objects.filter(name="backup").exists()
        assert f"the last one was made 0 h ago in {place}" in doctor(vel)
        failed = vel("backup", "create", "--to", str(tmp_path / "a" / "b"))
        assert failed.returncode == 1
        assert "the last one failed 0 h ago: The directory" in doctor(vel)
        first.close()
        first.join()


@pytest.mark.django_db(transaction=True)
def test_a_failed_backup_is_tried_again_after_an_hour(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    missing = str(tmp_path / "a" / "b")
    settings.VEL = {**settings.VEL, "BACKUP_TO": missing, "BACKUP_EVERY": 24.0}
    with new_vel(VEL_SECRET_KEY=KEY, VEL_BACKUP_TO=missing) as vel:
        for name, value in vel.env(DATABASE_URL="", DJANGO_SETTINGS_MODULE="").items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("DJANGO_SETTINGS_MODULE")
        starter = BackupStarter()
        starter.look()
        assert starter._thread is not None
        starter._thread.join()
        starter._next = 0.0
        starter.look()
        left = BackgroundJob.objects.get(name="backup").due_at - database_now()
        assert RETRY_SECONDS / 2 < left <= RETRY_SECONDS
        starter.close()
        starter.join()


@pytest.mark.django_db
def test_without_a_place_or_an_interval_no_backup_is_made(settings: Settings) -> None:
    for changed in ({"BACKUP_TO": "/nowhere"}, {"BACKUP_EVERY": 1.0}):
        settings.VEL = {**settings.VEL, "BACKUP_TO": "", "BACKUP_EVERY": 0.0, **changed}
        starter = BackupStarter()
        starter.look()
        assert starter._thread is None
    assert not BackgroundJob.objects.filter(name="backup").exists()
