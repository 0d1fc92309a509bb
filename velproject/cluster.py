"""django-q2's cluster, with workers that may be killed while they hold their timer's lock.

A worker and the guard of its cluster share a timer behind a lock of the operating system, which
the death of its holder does not release. The worker holds it whenever it hands a result over; the
guard takes it with every look. So with django-q2's own lock one kill at the wrong moment leaves a
guard that waits for ever, and no worker of that cluster is ever started again.
"""

from __future__ import annotations

from multiprocessing import Process, RLock, Value
from typing import Any

import django_q.cluster
from django.db import DatabaseError, connection, connections
from django_q.cluster import Cluster, Sentinel
from django_q.conf import Conf
from django_q.pusher import pusher
from django_q.worker import worker

from agents.conf import vel_settings
from agents.models import DatabaseConnection
from agents.services.host_membership import join_host, refuse_nameless

PATIENCE = 5.0
"""Seconds after which a holder counts as dead: it needs microseconds."""


CONNECTION_SECONDS = 60
"""How long the pusher keeps a connection."""


class MortalLock:
    """A lock of several processes, re-entrant, that is passed by when it is never released.

    Who passes by goes on without it: for a timer, the worst is one count that is lost. For one
    thread a process, as django-q2 uses it.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self._lock = RLock()
        self._patience = patience
        self._held: list[bool] = []

    def acquire(self) -> bool:
        held = self._lock.acquire(timeout=self._patience)
        self._held.append(held)
        # Known by now: the next look does not wait as long again.
        self._patience = self._patience if held else 0.0
        return held

    def release(self) -> None:
        if self._held.pop():
            self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def push_on_one_connection(*arguments: object) -> None:
    """Do what django-q2's pusher does, and keep the connection to the database.

    The pusher looks for tasks ten times a second. With Django's default every look would open a
    connection, and PostgreSQL would start a process for it.
    """
    wrapper = connections[Conf.ORM or "default"]
    given = wrapper.settings_dict
    if not given["CONN_MAX_AGE"] and "pool" not in given["OPTIONS"]:
        # The check replaces a connection that PostgreSQL has closed, for example at a restart.
        kept = {"CONN_MAX_AGE": CONNECTION_SECONDS, "CONN_HEALTH_CHECKS": True}
        wrapper.settings_dict = {**given, **kept}
    pusher(*arguments)


class VelSentinel(Sentinel):
    """The guard of a cluster. It never waits for a worker that is gone."""

    def spawn_pusher(self) -> Process:
        process: Process = self.spawn_process(
            push_on_one_connection, self.task_queue, self.event_out, self.broker
        )
        return process

    def spawn_worker(self) -> None:
        # Any lock will do, which the types of `Value` do not say.
        lock: Any = MortalLock()
        timer = Value("f", -1, lock=lock)
        self.spawn_process(worker, self.task_queue, self.result_queue, timer, self.timeout)


class VelCluster(Cluster):
    def start(self) -> int:
        # The name under which it looks for its guard's class.
        django_q.cluster.Sentinel = VelSentinel
        pid: int = super().start()
        return pid


def agents_have_databases() -> bool:
    """Whether any connection is stored. A database that is away may know of some."""
    try:
        return DatabaseConnection.objects.exists()
    except DatabaseError:
        return True
    finally:
        connections.close_all()


def join_before_forks() -> None:
    """Refuse to start workers that no host may have; `HostRefused` says why.

    A database that is away is the workers' own affair: they wait for it.
    """
    try:
        if vel_settings().HOST:
            join_host()
        elif connection.vendor == "postgresql":
            refuse_nameless()
    except DatabaseError:
        return
    finally:
        connections.close_all()
