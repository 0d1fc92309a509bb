"""Membership of a process in one of several hosts: it joins and sends heartbeats."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from agents.models import Machine
from agents.models.database_clock import DatabaseNow, database_now
from agents.services.placement import Member
from agents.settings import DataSettings, MachineSettings


class MachineRefused(ImproperlyConfigured):
    """The process may not drive runs under this name. The message contains the remedy."""


@dataclass(frozen=True, slots=True)
class Sign:
    """The response to a host's heartbeat."""

    is_draining: bool


@transaction.atomic
def join_machine() -> Member:
    """Register this machine as a host, also again after it was declared dead.

    Raises `MachineRefused` if another machine has the name, and as `check_shared_workspaces`.
    """
    settings = MachineSettings.now()
    identity = own_identity()
    now = database_now()
    row, _ = Machine.objects.select_for_update().get_or_create(
        name=settings.HOST,
        defaults={"identity": identity, "joined_at": now, "seen_at": now},
    )
    if row.identity != identity and row.dead_at is None:
        raise MachineRefused(
            f"A host named {row.name!r} with another data directory exists. Give this machine "
            "another VEL_HOST. If the other host no longer exists: vel hosts declare-dead "
            f"{row.name}"
        )
    if row.dead_at is not None:
        row.identity, row.joined_at, row.is_draining = identity, now, False
    row.dead_at, row.seen_at = None, now
    row.shares_workspaces = settings.SHARED_WORKSPACES
    row.save()
    check_shared_workspaces(row)
    return Member(row.name, row.incarnation)


@transaction.atomic
def machine_heartbeat(member: Member) -> Sign | None:
    """Record that the host is alive.

    Returns None if it was declared dead: then stop the runs of this process, and join again.
    """
    rows = Machine.objects.filter(
        name=member.name, incarnation=member.incarnation, dead_at__isnull=True
    )
    if not rows.update(seen_at=DatabaseNow()):
        return None
    return Sign(rows.values_list("is_draining", flat=True).get())


def refuse_nameless() -> None:
    """Raise `MachineRefused` for a process without a host name if there are several hosts."""
    if not MachineSettings.now().HOST and Machine.objects.filter(dead_at=None).exists():
        names = ", ".join(Machine.objects.filter(dead_at=None).values_list("name", flat=True))
        raise MachineRefused(
            f"Several hosts work on this database ({names}), and this process has no name: set "
            "VEL_HOST. If there is one machine only again: vel hosts forget NAME"
        )


def own_identity() -> str:
    """Return a random text from a file in the data directory. The first call creates the file.

    With `SHARED_WORKSPACES`, all hosts have one data directory, and each has a file of its own.
    """
    name = (
        f"host-{MachineSettings.now().HOST}" if MachineSettings.now().SHARED_WORKSPACES else "host"
    )
    path = DataSettings.now().DATA_DIR / name
    path.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(2):
        try:
            return path.read_text().strip()
        except FileNotFoundError:
            _make_identity(path)
    return path.read_text().strip()


def _make_identity(path: Path) -> None:
    """Create the file atomically: another process of this machine may do it at the same time."""
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    temporary.write_text(secrets.token_hex(16))
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def check_shared_workspaces(row: Machine) -> None:
    """Raise `MachineRefused` if only some of the living hosts share the data directory.

    Also if the setting says that all share it, but another host has a different one.
    """
    others = Machine.objects.filter(dead_at=None).exclude(name=row.name)
    for other in others:
        if other.shares_workspaces != row.shares_workspaces:
            raise MachineRefused(
                f"The host {other.name} was started with another VEL_SHARED_WORKSPACES: it must "
                "be the same on all hosts."
            )
        if not row.shares_workspaces:
            continue
        mark = DataSettings.now().DATA_DIR / f"host-{other.name}"
        try:
            found = mark.read_text().strip()
        except OSError as error:
            found = str(error.strerror)
        if found != other.identity:
            raise MachineRefused(
                f"VEL_SHARED_WORKSPACES is set, but {mark} is not what the host {other.name} "
                "wrote: the data directories are not the same. Mount one file system on all "
                "hosts, or unset it. A host that is gone for good: vel hosts declare-dead "
                f"{other.name}"
            )
