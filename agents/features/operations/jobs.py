"""Each worker can start scheduled backups."""

from agents.features.operations.backups.schedule import BackupStarter

PARTS = [BackupStarter]
