"""Placement: which of several machines has a thread's files, and so drives its runs.

A thread belongs to the host that first drives a run of it in a sandbox. Subagents' threads belong
to the host of their first thread: its row is valid for the whole family. A single machine (no
`VEL["HOST"]`), or hosts that share a file system, pin nothing.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from agents.models import POOL, Machine, Run, Thread
from agents.services.errors import Conflict
from agents.settings import DataSettings, MachineSettings
from sandbox.toolboxes.find import HeldToolbox, hold_toolbox
from sandbox.toolboxes.toolbox import ToolboxError

_HOSTS = Machine._meta.db_table

MARK = "placement"
"""In the root of a workspace. Commands do not see it, because only its areas are mounted."""


@dataclass(frozen=True, slots=True)
class Member:
    """A process's right to act for its host. It is lost when the host is declared dead."""

    name: str
    incarnation: int


def machine_name() -> str:
    """Return this machine's name: the setting `VEL["HOST"]`, or else the name of the computer."""
    return MachineSettings.now().HOST or socket.gethostname()


def home_of_new(executor: str, workspace_path: str) -> str:
    """Return `Thread.host` of a new thread; "" if any of several hosts may take it.

    Threads of a program or in a user's own directory never leave this machine.
    """
    if MachineSettings.now().HOST and executor == POOL and not workspace_path:
        return ""
    return machine_name()


def holder_of(thread: Thread) -> str:
    """Return the host that has the thread's files now; empty if none has, or all have."""
    if MachineSettings.now().SHARED_WORKSPACES:
        return ""
    first = thread.root_id or thread.pk
    return Thread.every.values_list("host", flat=True).get(pk=first)


def is_elsewhere(thread: Thread) -> bool:
    """Return whether this machine has no right to the thread's directories."""
    return MachineSettings.now().pins_threads and holder_of(thread) != machine_name()


def must_be_here(thread: Thread, there: str, nowhere: str = "") -> None:
    """Raise `Conflict` for a thread whose files this machine does not hold.

    `there` and `nowhere` contain the advice if another host has them, and if no host has.
    """
    if not is_elsewhere(thread):
        return
    holder = holder_of(thread)
    where = f"on the host {holder}: {there}" if holder else f"on no host now: {nowhere}"
    raise Conflict(f"The files of this thread are {where}", code="files_elsewhere")


def take_home(thread: Thread) -> None:
    """Let a program on this machine continue a thread that no other host holds.

    The caller has locked the thread's row. Raises `Conflict` if another host has the files.
    """
    if not MachineSettings.now().pins_threads:
        return
    first = thread.root_id or thread.pk
    if Thread.every.filter(pk=first, host="").update(host=machine_name()):
        Thread.every.filter(root=first).update(host=machine_name())
    must_be_here(thread, "continue there, or write to it through the pages or the API.")


# The workers' queues ------------------------------------------------------------------------------


def queue_of(host: str) -> str:
    """Return the key of a host's own task queue. Each host reads it and the common one."""
    return f"{settings.Q_CLUSTER['name']}@{host}"


def queue_for(run: Run) -> dict[str, Any]:
    """Return the options of `async_task` for a run, empty if any worker may take it."""
    if not MachineSettings.now().pins_threads:
        return {}
    holder = holder_of(run.thread)
    return {"cluster": queue_of(holder)} if holder else {}


# Claims -------------------------------------------------------------------------------------------


def lock_membership(member: Member, *, exclusive: bool = False) -> bool:
    """Lock a host's row, and return whether the host is not declared dead and takes runs.

    The answer is valid until the transaction ends. Lock rows in this order: run, host, thread.
    Several claims can have the usual lock at a time, and heartbeats do not wait for it. The
    exclusive lock waits for all claims, and claims and heartbeats wait for it: hold it briefly.

    Args:
        member: The host and its incarnation. False if the host has joined again since.
        exclusive: Take the exclusive lock. A host that takes no runs counts, too.
    """
    strength = "UPDATE" if exclusive else "KEY SHARE"
    lock = f" FOR {strength}" if connection.vendor == "postgresql" else ""
    takes = "" if exclusive else " AND NOT is_draining"
    with connection.cursor() as cursor:
        cursor.execute(
            f'SELECT 1 FROM "{_HOSTS}" WHERE name = %s AND incarnation = %s'  # noqa: S608
            f" AND dead_at IS NULL{takes}{lock}",
            [member.name, member.incarnation],
        )
        return cursor.fetchone() is not None


def take_place(run: Run, member: Member) -> bool:
    """Return whether the member's host may drive the run; pin its thread if it is free.

    Call this in the transaction of the claim, with the run's row locked.
    """
    if not lock_membership(member):
        return False
    if not MachineSettings.now().pins_threads:
        return True
    first = run.thread.root_id or run.thread_id
    holder = Thread.every.values_list("host", flat=True).get(pk=first)
    if holder or not run.spec["sandbox"]:
        return holder in ("", member.name)
    if not Thread.every.filter(pk=first, host="").update(host=member.name):
        return False  # another host was faster
    Thread.every.filter(root=first).update(host=member.name)
    return True


def is_current(thread_id: str, placement: int) -> bool:
    """Return whether this machine's directory is the present one. No mark means placement 0."""
    root = DataSettings.now().workspaces / thread_id
    try:
        return int((root / MARK).read_text()) == placement
    except FileNotFoundError:
        return placement == 0
    except ValueError:
        return False


def toolbox_here(name: str) -> HeldToolbox:
    """Return a toolbox, locked. Raises `ToolboxError`, which names the host if there are several.

    Hosts do not share toolboxes: the host of the page that an agent was made on may have one that
    the host of its thread lacks.
    """
    try:
        return hold_toolbox(DataSettings.now().toolboxes, name)
    except ToolboxError as problem:
        host = MachineSettings.now().HOST
        if not host:
            raise
        raise ToolboxError(
            f"{problem} This is the host {host}. Hosts do not share toolboxes: build it on each "
            f"that has workers. `vel toolbox show {name}` on a host that has it lists its packages."
        ) from problem
