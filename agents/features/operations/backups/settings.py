"""Backups."""

from agents.kernel.settings import FeatureSettings


class BackupSettings(FeatureSettings):
    """Backups

    See [backup](../operations/backup.md).
    """

    BACKUP_TO: str = ""
    """Where `vel backup` stores backups: a directory, or `s3://bucket/prefix`."""


SETTINGS = (BackupSettings,)
