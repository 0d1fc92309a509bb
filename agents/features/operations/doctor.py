"""The checks of operations for `vel doctor`, and its support bundle."""

from __future__ import annotations

import time
from collections.abc import Iterator

from agents.features.operations.backups.status import read_status
from agents.features.operations.service.support_bundle import write_bundle
from agents.features.operations.settings import BackupSettings
from agents.features.operations.starting import refusal
from agents.kernel.findings import Finding, Level, WriteBundle

_LATE = 2.0
"""A scheduled backup is late after this number of intervals."""


def check_backups() -> Iterator[Finding]:
    """Report the age of the last backup and the last failure."""
    settings, status = BackupSettings.now(), read_status()
    every = settings.BACKUP_EVERY * 3600 if settings.BACKUP_TO else 0.0
    if status.has_failed:
        yield Finding(
            "backups",
            Level.BROKEN,
            f"the last one failed {_ago(status.failed_at)}: {status.error}",
            "Repair the reason, then run: vel backup create",
        )
    if not status.succeeded_at:
        if not status.has_failed:
            yield Finding(
                "backups",
                Level.NOTE if every else Level.OK,
                "none was made on this machine",
                "Run: vel backup create" if every else "docs/operations/backup.md sets them up.",
            )
        return
    age = time.time() - status.succeeded_at
    is_late = bool(every) and age > _LATE * every
    yield Finding(
        "backups",
        Level.NOTE if is_late else Level.OK,
        f"the last one was made {_ago(status.succeeded_at)} in {status.place}",
        "It is late: look at the log of the workers." if is_late else "",
    )


def _ago(moment: float) -> str:
    hours = max(0.0, time.time() - moment) / 3600
    return f"{hours:.0f} h ago" if hours < 72 else f"{hours / 24:.0f} days ago"


def check_moved() -> Iterator[Finding]:
    """Check that the database was not moved to another one, and that no restore is unfinished."""
    if reason := refusal():
        name = "restore" if reason.startswith("A restore") else "moved database"
        yield Finding(name, Level.BROKEN, reason)


CHECKS = (check_backups,)
DATABASE_CHECKS = (check_moved,)
BUNDLES: tuple[WriteBundle, ...] = (write_bundle,)
