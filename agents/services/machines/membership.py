"""What a process of one of several hosts does in its name: it joins, and says that it lives."""

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
    """This process may not drive runs under this name. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Sign:
    """What a host learns when it says that it lives."""

    is_draining: bool


@transaction.atomic
def join_machine() -> Member:
    """Enter this machine among the hosts, or come back after it was declared dead.

    Raises `MachineRefused` where another machine has the name, and where shared workspaces are
    declared and not there.
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
            f"There is a host {row.name!r} with another data directory. Give this machine a "
            "VEL_HOST of its own; if the other one is gone for good: vel hosts declare-dead "
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
    """Say that the host lives. None: it was declared dead, and this process must stop."""
    rows = Machine.objects.filter(
        name=member.name, incarnation=member.incarnation, dead_at__isnull=True
    )
    if not rows.update(seen_at=DatabaseNow()):
        return None
    return Sign(rows.values_list("is_draining", flat=True).get())


def refuse_nameless() -> None:
    """Raise `MachineRefused` for a process that does not say which of several hosts it is on."""
    if not MachineSettings.now().HOST and Machine.objects.filter(dead_at=None).exists():
        names = ", ".join(Machine.objects.filter(dead_at=None).values_list("name", flat=True))
        raise MachineRefused(
            f"Several hosts work on this database ({names}), and this process has no name: set "
            "VEL_HOST. If there is one machine only again: vel hosts forget NAME"
        )


def own_identity() -> str:
    """What distinguishes this machine's data directory; made at the first call.

    With shared workspaces each host has its own.
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
    """Whole or not at all: another process of this machine may make it in the same moment."""
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    temporary.write_text(secrets.token_hex(16))
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def check_shared_workspaces(row: Machine) -> None:
    """Raise `MachineRefused` unless all living hosts share the data directory, or none says so."""
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
