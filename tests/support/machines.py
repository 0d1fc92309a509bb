"""Several hosts in one process, which switches between their settings and directories."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.storage import storages
from django.test import override_settings

from agents.models import Machine, Thread
from agents.models.database_clock import database_now

LEASE = 20.0


class Machines:
    """Hosts with directories in `directory` and a common storage: there, or that of `backend`."""

    def __init__(self, directory: Path, backend: dict[str, Any] | None = None) -> None:
        self.directory = directory
        where = {"location": str(directory / "storage")}
        local = "django.core.files.storage.FileSystemStorage"
        self.storage = backend or {"BACKEND": local, "OPTIONS": where}

    def data(self, name: str) -> Path:
        return self.directory / name

    @contextmanager
    def on(self, name: str, **more: Any) -> Iterator[Path]:
        """Run the block as this host. Yield its data directory."""
        directory = self.data(name)
        directory.mkdir(mode=0o711, exist_ok=True)
        vel = {
            **settings.VEL,
            "HOST": name,
            "DATA_DIR": directory,
            "HOST_HEARTBEAT_SECONDS": 0.1,
            "LEASE_SECONDS": LEASE,
            "HEARTBEAT_SECONDS": LEASE / 6,
            **more,
        }
        stores = {**settings.STORAGES, "vel": self.storage}
        with override_settings(VEL=vel, STORAGES=stores):
            yield directory

    def workspace(self, name: str, thread: Thread, area: str = "workspace") -> Path:
        return self.data(name) / "workspaces" / thread.pk / area


def make_silent(name: str, seconds: float = 1_000.0) -> None:
    """Make the host look silent for this time."""
    Machine.objects.filter(name=name).update(seen_at=database_now() - seconds)


def keep_alive(name: str) -> None:
    """Let the host count as alive after it stopped, even on a slow machine."""
    make_silent(name, -1_000.0)


def stored() -> Any:
    return storages["vel"]
