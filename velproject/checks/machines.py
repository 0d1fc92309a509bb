"""System checks for several machines on one database: settings that could lose files."""

from __future__ import annotations

import re
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured

from agents.settings import MachineSettings, SnapshotSettings, WorkerSettings

_CONTAINER = re.compile(r"[0-9a-f]{12}")
_LOCAL = "django.core.files.storage.FileSystemStorage"


@register(Tags.compatibility)
def check_machines(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check that a machine with a name has a shared database and a shared file storage."""
    try:
        vel, lease = MachineSettings.now(), WorkerSettings.now().LEASE_SECONDS
        snapshot_turns = SnapshotSettings.now().SNAPSHOT_TURNS
    except ImproperlyConfigured:
        return []  # the check of the settings reports this
    found: list[CheckMessage] = []
    if not vel.HOST:
        if vel.SHARED_WORKSPACES or vel.HOST_DEAD_AFTER:
            found.append(
                Error(
                    "VEL_SHARED_WORKSPACES and VEL_HOST_DEAD_AFTER are for several hosts, but this "
                    "process has no host name.",
                    hint="Set VEL_HOST on every host, or unset them.",
                    id="vel.E030",
                )
            )
        return found
    if _CONTAINER.fullmatch(vel.HOST):
        found.append(
            Warning(
                f"VEL_HOST={vel.HOST} looks like the ID of a container, which changes at each "
                "start: threads would stay with the old name.",
                hint="Give each host a permanent name and a permanent data directory.",
                id="vel.W031",
            )
        )
    if settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
        found.append(
            Error(
                f"VEL_HOST={vel.HOST} is for several hosts, and SQLite is a file on only one.",
                hint="Set DATABASE_URL to the PostgreSQL that all hosts use, or unset VEL_HOST.",
                id="vel.E031",
            )
        )
    if settings.Q_CLUSTER.get("broker_class") != "agents.queues.MachineQueue":
        found.append(
            Error(
                "Q_CLUSTER has no broker that reads this host's queue.",
                hint='Set Q_CLUSTER["broker_class"] = "agents.queues.MachineQueue".',
                id="vel.E032",
            )
        )
    if 0 < vel.HOST_DEAD_AFTER < 2 * lease:
        found.append(
            Error(
                f"VEL_HOST_DEAD_AFTER={vel.HOST_DEAD_AFTER:g} is shorter than two leases of runs "
                f"({lease:g} s each).",
                hint=f"Set it to {4 * lease:g} or more, or to 0.",
                id="vel.E033",
            )
        )
    if vel.pins_threads:
        found += _storage(snapshot_turns)
    return found


def _storage(snapshot_turns: int) -> list[CheckMessage]:
    storage = settings.STORAGES.get("vel")
    if storage is None:
        return [
            Error(
                "Several hosts need a shared storage: without it, a host that fails takes all "
                "files of its threads with it.",
                hint="Set VEL_STORAGE_URL (docs/operations/scaling.md), or VEL_SHARED_WORKSPACES=1 "
                "if all hosts share one data directory.",
                id="vel.E034",
            )
        ]
    found: list[CheckMessage] = []
    if storage["BACKEND"] == _LOCAL:
        where = storage.get("OPTIONS", {}).get("location")
        found.append(
            Warning(
                f"The hosts' shared storage is the directory {where}: it must be the same mounted "
                "file system on all of them.",
                id="vel.W030",
            )
        )
    if snapshot_turns == 0:
        found.append(
            Error(
                "SNAPSHOT_TURNS is 0: without snapshots, other hosts cannot continue runs.",
                hint="Remove SNAPSHOT_TURNS from the VEL setting.",
                id="vel.E035",
            )
        )
    return found
