"""Operator actions on several machines that drive runs: drain, declare dead, forget.

Locks: a run's row, then its host's, then its thread's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django_q.models import OrmQ

from agents.models import Machine, Thread
from agents.models.database_clock import DatabaseNow, database_now
from agents.services.audit import record
from agents.services.erasure.elsewhere import forget_erased_of
from agents.services.errors import Conflict, NotFound
from agents.services.placement import queue_of
from agents.settings import MachineSettings, WorkerSettings

LONGEST_REASON = 300
SILENT_HEARTBEATS = 3
"""The number of missed heartbeats after which a host is shown as silent."""


@dataclass(frozen=True, slots=True)
class MachineState:
    """The state of a host for display.

    `silent_for` is in seconds; `threads` is the number of threads with their files there.
    """

    name: str
    state: str
    silent_for: float
    threads: int
    shares_workspaces: bool


def machine_states() -> list[MachineState]:
    """Return the states of all hosts, by name."""
    now = database_now()
    threads = Thread.every.filter(root=None).exclude(host="").order_by().values_list("host")
    counts = threads.annotate(held=Count("pk"), moving=Count("pk", filter=Q(workspace_path="")))
    found = {host: (held, moving) for host, held, moving in counts}
    states = []
    for row in Machine.objects.all():
        held, moving = found.get(row.name, (0, 0))
        silent_for, state = max(0.0, now - row.seen_at), state_of(row, now, moving)
        states.append(MachineState(row.name, state, silent_for, held, row.shares_workspaces))
    return states


def with_threads(machines: QuerySet[Machine]) -> QuerySet[Any]:
    """Annotate the number of threads with files on each machine, and of those that can move."""
    threads = Thread.every.filter(host=OuterRef("pk"), root=None)

    def number(rows: QuerySet[Thread]) -> Coalesce:
        counts = rows.order_by().values("host").annotate(count=Count("pk")).values("count")
        return Coalesce(Subquery(counts), 0)

    return machines.annotate(held=number(threads), moving=number(threads.filter(workspace_path="")))


def state_of(row: Machine, now: float, moving: int) -> str:
    """Return alive, silent, draining, drained or dead.

    `now` is the database's time in seconds since 1970, and `moving` the number of threads on the
    host that can move: not those in directories of its users.
    """
    if row.dead_at is not None:
        return "dead"
    if now - row.seen_at > SILENT_HEARTBEATS * MachineSettings.now().HOST_HEARTBEAT_SECONDS:
        return "silent"
    if row.is_draining:
        return "draining" if moving else "drained"
    return "alive"


@transaction.atomic
def set_draining(name: str, draining: bool, *, by: AbstractBaseUser | None = None) -> None:
    """Let a host start no runs and give its threads to others, or undo that.

    Raises `NotFound`, and `Conflict` for a dead host, or if no other host is alive to take threads.
    """
    row = _locked(name)
    if row.dead_at is not None:
        raise Conflict(f"The host {name} was declared dead, so its threads have already moved.")
    if draining and row.shares_workspaces is False and not _others_alive(name):
        raise Conflict(
            f"No other host is alive to take the threads of {name}. Start another host first."
        )
    Thread.every.filter(host=name).exclude(cannot_move="").update(cannot_move="")  # it tries again
    if row.is_draining != draining:
        row.is_draining = draining
        row.save(update_fields=["is_draining"])
        record("host.drained" if draining else "host.undrained", row, name=name, by=by)


def _others_alive(name: str) -> bool:
    silent = SILENT_HEARTBEATS * MachineSettings.now().HOST_HEARTBEAT_SECONDS
    others = Machine.objects.filter(dead_at=None, is_draining=False).exclude(name=name)
    return others.filter(seen_at__gt=DatabaseNow() - silent).exists()


@transaction.atomic
def declare_dead(name: str, *, by: AbstractBaseUser | None = None, silent_for: float = 0) -> int:
    """Let other hosts continue the threads of a lost host; return their number.

    Their files are restored from their last stored snapshots. Writes of the host under its old
    incarnation are refused. Raises `NotFound`, and `Conflict` if the host has sent a heartbeat
    within the length of a lease, or `silent_for` seconds: it may be driving runs.
    """
    row = _locked(name)
    needed = max(WorkerSettings.now().LEASE_SECONDS, silent_for)
    silent = database_now() - row.seen_at
    if row.dead_at is None and silent < needed:
        raise Conflict(
            f"The host {name} sent a heartbeat {silent:.0f} s ago. Stop it, then wait {needed:.0f} "
            f"s. To remove it while it runs: vel hosts drain {name}",
            code="host_alive",
        )
    if row.dead_at is None:
        row.dead_at, row.incarnation = database_now(), row.incarnation + 1
        row.save(update_fields=["dead_at", "incarnation"])
    moved = _release_all(name)
    changes = {"threads": (moved, 0)}
    record("host.declared_dead", row, name=name, by=by, changes=changes)
    return moved


def _release_all(name: str) -> int:
    """Release all threads, except those in a caller's directory, which is on that machine only."""
    # In the usual order of locks on threads.
    first = Thread.every.select_for_update(no_key=True).filter(
        host=name, root=None, workspace_path=""
    )
    ids = list(first.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(ids), 500):
        release(ids[start : start + 500], lost_host=name)
    OrmQ.objects.filter(key=queue_of(name)).update(key=settings.Q_CLUSTER["name"])
    return len(ids)


def release(first: list[str], *, lost_host: str = "") -> None:
    """Let any host take these threads with their subagents' threads.

    Pending approvals become stale: they showed files of the old directories.

    Args:
        first: The ids of the threads of people. The caller has locked their rows.
        lost_host: The name of the host, if it has lost the files.
    """
    Thread.every.filter(pk__in=first).update(placement=F("placement") + 1)
    family = Thread.every.filter(Q(pk__in=first) | Q(root__in=first))
    family.update(host="", workspace_generation=F("workspace_generation") + 1, cannot_move="")
    if lost_host:
        family.update(lost_host=lost_host)


def staying_threads(name: str) -> list[str]:
    """Return the ids of threads that never leave a host: those in a caller's directory."""
    threads = Thread.every.filter(host=name, root=None, erased_at=None).exclude(workspace_path="")
    return list(threads.order_by("pk").values_list("pk", flat=True))


def stuck_threads(name: str) -> dict[str, str]:
    """Return the threads that a drained host cannot store, by id with the reason."""
    threads = Thread.every.filter(host=name, root=None, workspace_path="", erased_at=None)
    found = threads.exclude(cannot_move="").order_by("pk")
    return dict(found.values_list("pk", "cannot_move"))


def note_stuck(name: str, thread_id: str, reason: str) -> None:
    """Store why a thread cannot leave a drained host."""
    rows = Thread.every.filter(pk=thread_id, host=name)
    rows.update(cannot_move=reason[:LONGEST_REASON])


def declare_silent_machines(seconds: float) -> list[str]:
    """Declare hosts dead that were silent for `seconds`, and return their names.

    The host of this process is never one of them.
    """
    late = Machine.objects.filter(dead_at=None, seen_at__lt=DatabaseNow() - seconds)
    done = []
    for name in late.exclude(name=MachineSettings.now().HOST).values_list("name", flat=True):
        try:
            declare_dead(name, silent_for=seconds)
        except Conflict:
            continue  # it is alive
        done.append(name)
    return done


@transaction.atomic
def adopt_threads(name: str, *, by: AbstractBaseUser | None = None) -> int:
    """Assign the threads of this machine's former name to its host, and return their number.

    Their files are already here. Raises `Conflict` if `name` is a host or this machine has no host
    name, and `NotFound` if this host has not joined.
    """
    if not MachineSettings.now().HOST:
        raise Conflict("This machine has no host name. Set VEL_HOST first.")
    if Machine.objects.filter(name=name).exists():
        raise Conflict(f"{name} is another host. Drain it to move its threads.")
    row = _locked(MachineSettings.now().HOST)
    threads = Thread.every.filter(host=name)
    count = threads.filter(root=None).count()
    threads.update(host=row.name)
    record("host.adopted", row, name=row.name, by=by, note=f"the threads of {name}")
    return count


@transaction.atomic
def forget_machine(name: str, *, by: AbstractBaseUser | None = None) -> None:
    """Delete the row of a lost host.

    Raises `NotFound`, and `Conflict` if the host has threads or is alive.
    """
    row = _locked(name)
    if Thread.every.filter(host=name, root=None, workspace_path="").exists():
        raise Conflict(f"{name} still has threads: drain it, or declare it dead, first.")
    if staying := staying_threads(name):
        raise Conflict(
            f"{name} still has {len(staying)} threads in directories of its users, which no other "
            f"host can continue. Erase them first: vel prune --thread {staying[0]} --apply"
        )
    silent = SILENT_HEARTBEATS * MachineSettings.now().HOST_HEARTBEAT_SECONDS
    if row.dead_at is None and database_now() - row.seen_at < silent:
        raise Conflict(f"{name} is alive. Stop it first.")
    forget_erased_of(name)
    record("host.forgotten", row, name=name, by=by)
    row.delete()


def _locked(name: str) -> Machine:
    """Lock the row of a host. This waits for every claim in progress on it."""
    row = Machine.objects.select_for_update().filter(name=name).first()
    if row is None:
        known = ", ".join(Machine.objects.values_list("name", flat=True)) or "none"
        raise NotFound(f"There is no host {name!r}. Known: {known}.", code="unknown_host")
    return row
