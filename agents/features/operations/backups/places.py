"""The place of backups from its URL."""

from __future__ import annotations

from pathlib import Path

from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.backups.prune import Keep
from agents.features.operations.backups.repository import DirectoryRepository, Repository
from agents.features.operations.backups.s3_repository import open_s3
from agents.features.operations.settings import BackupSettings
from agents.settings import DataSettings


def open_repository(place: str) -> Repository:
    """Return the repository of a directory or of `s3://bucket/prefix?endpoint_url=…`.

    Args:
        place: Empty: VEL_BACKUP_TO.

    Raises:
        BackupRefused: The place is missing or invalid.
    """
    place = place or BackupSettings.now().BACKUP_TO
    if not place:
        raise BackupRefused("Name the place of the backups, or set VEL_BACKUP_TO.")
    if place.startswith("s3://"):
        return open_s3(place)
    if place.startswith("file://"):
        place = place.removeprefix("file://")
    if "://" in place:
        raise BackupRefused(
            f"{place.partition('?')[0]!a} is no place for backups. Expected a directory or "
            "s3://bucket/prefix."
        )
    path = Path(place).expanduser().absolute()
    data = DataSettings.now().DATA_DIR.absolute()
    if path.resolve().is_relative_to(data.resolve()):
        raise BackupRefused(
            f"{path} is in the data directory, and would be lost with it. Name a directory on "
            "another disk."
        )
    return DirectoryRepository(path)


def keep_of(daily: int | None, weekly: int | None, monthly: int | None) -> Keep:
    """Return how many backups stay. None: as the settings say."""
    settings = BackupSettings.now()
    return Keep(
        settings.BACKUP_KEEP_DAILY if daily is None else daily,
        settings.BACKUP_KEEP_WEEKLY if weekly is None else weekly,
        settings.BACKUP_KEEP_MONTHLY if monthly is None else monthly,
    )
