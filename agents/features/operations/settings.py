"""The settings of operations."""

from typing import Annotated

from agents.kernel.settings import About, Count, FeatureSettings


class BackupSettings(FeatureSettings):
    """Backups

    See [backup](../operations/backup.md).
    """

    BACKUP_TO: str = ""
    """Where `vel backup` stores backups: a directory, or `s3://bucket/prefix` (with
    `?endpoint_url=…&region_name=…`)."""
    BACKUP_EVERY: Annotated[float, About(unit="hours", at_least=0)] = 0.0
    """How often a worker makes a backup. 0: never."""
    BACKUP_KEEP_DAILY: Count = 7
    """Days whose last backup stays when older ones are deleted."""
    BACKUP_KEEP_WEEKLY: Count = 4
    """Weeks whose last backup stays."""
    BACKUP_KEEP_MONTHLY: Count = 12
    """Months whose last backup stays."""


SETTINGS = (BackupSettings,)
