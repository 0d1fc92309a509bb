"""The last backup and the last failure, in a file of the data directory."""

from __future__ import annotations

import json
import os
import secrets
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from agents.features.operations.owner import give_to_owner
from agents.settings import DataSettings

NAME = "backup-status.json"
DIRECTORY_NAME = "backup-name"


@dataclass(frozen=True, slots=True)
class BackupStatus:
    """Times are in seconds since 1970; 0: never. `name` and `place` are those of the last backup.

    `error` is that of the last failure.
    """

    succeeded_at: float = 0.0
    name: str = ""
    place: str = ""
    failed_at: float = 0.0
    error: str = ""

    @property
    def has_failed(self) -> bool:
        """Whether the last try has failed."""
        return self.failed_at > self.succeeded_at


def data_directory_name() -> str:
    """Return the random name of this data directory in backups. The first call creates its file."""
    path = _file().with_name(DIRECTORY_NAME)
    if not path.exists():
        _write(path, secrets.token_hex(16))
    return path.read_text()


def read_status() -> BackupStatus:
    """Return the status of this machine's backups: empty if none was tried.

    If its file is damaged, the status has an `error`.
    """
    try:
        found = json.loads(_file().read_text())
        return BackupStatus(**found)
    except FileNotFoundError:
        return BackupStatus()
    except (ValueError, TypeError):
        return BackupStatus(error=f"{_file()} is damaged", failed_at=time.time())


def note_success(name: str, place: str) -> None:
    """Store that a backup was made now."""
    _write_status(replace(read_status(), succeeded_at=time.time(), name=name, place=place))


def note_failure(error: str) -> None:
    """Store that no backup could be made now."""
    _write_status(replace(read_status(), failed_at=time.time(), error=error[:1000]))


def _write_status(status: BackupStatus) -> None:
    _write(_file(), json.dumps(asdict(status)))


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(text)
            give_to_owner(file.fileno())
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def _file() -> Path:
    return DataSettings.now().DATA_DIR / NAME
