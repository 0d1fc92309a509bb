"""Scheduled backups: a worker starts `vel backup create`, and deletes old backups afterwards."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from typing import ClassVar

from agents.features.operations.settings import BackupSettings
from agents.kernel.features import WorkerPart
from agents.services.background_jobs import hurry_background_job, take_background_job
from agents.settings import MachineSettings

logger = logging.getLogger(__name__)

JOB = "backup"
LOOK_SECONDS = 30.0
"""How often a worker looks whether a backup is due."""
RETRY_SECONDS = 3600.0
"""The time until the next try after a backup has failed, if the interval is longer."""
_COMMAND = (sys.executable, "-P", "-m", "velproject.cli", "backup")
_JOIN_SECONDS = 5.0


class BackupStarter(WorkerPart):
    """Makes backups in processes of their own, which take no time from runs.

    One worker of the installation, or of each host with its own `VEL_HOST`, starts a due backup. It
    tries again an hour after a failure. If the worker ends meanwhile, so does the backup; the next
    one is made when it is due.
    """

    finds: ClassVar[str] = "backups"

    def __init__(self) -> None:
        self._next = 0.0
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[str] | None = None
        self._closed = False
        self._has_failed = False

    def look(self) -> None:
        """Start a backup if one is due."""
        settings = BackupSettings.now()
        if not (settings.BACKUP_TO and settings.BACKUP_EVERY) or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LOOK_SECONDS
        if self._thread is not None and self._thread.is_alive():
            return
        # Each of several hosts backs up its own files.
        name = f"{JOB}:{host}"[:40] if (host := MachineSettings.now().HOST) else JOB
        if self._has_failed:
            hurry_background_job(name, RETRY_SECONDS)
            self._has_failed = False
        if take_background_job(name, settings.BACKUP_EVERY * 3600):
            self._thread = threading.Thread(target=self._back_up, name="vel-backup", daemon=True)
            self._thread.start()

    def _back_up(self) -> None:
        if self._run("create"):
            self._run("prune", "--apply")
        else:
            self._has_failed = True

    def _run(self, *arguments: str) -> bool:
        if self._closed:
            return False
        with subprocess.Popen(
            [*_COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            self._process = process
            said, _ = process.communicate()
        self._process = None
        last = said.strip().rpartition("\n")[2]
        if process.returncode != 0:
            logger.error("vel backup %s failed: %s", arguments[0], last)
            return False
        logger.info("vel backup %s: %s", arguments[0], last)
        return True

    def close(self) -> None:
        self._closed = True
        if (process := self._process) is not None:
            process.terminate()

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join(_JOIN_SECONDS)


PARTS = [BackupStarter]
