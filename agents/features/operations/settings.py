"""The settings of operations."""

from agents.features.operations.backups.settings import BackupSettings

SETTINGS = (BackupSettings,)
