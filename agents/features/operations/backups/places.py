"""The place of backups from its URL."""

from __future__ import annotations

from pathlib import Path

from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.backups.repository import DirectoryRepository, Repository
from agents.features.operations.backups.settings import BackupSettings
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
