"""A cluster of django-q2 that continues after the death of any of its processes.

The processes of a cluster share queues, events and timers. In django-q2 these have locks of the
operating system, and a killed process never releases its lock. After one kill at the wrong moment,
the workers take no tasks, the guard starts no workers, or the cluster does not stop.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from multiprocessing import Process, RLock, Value, current_process
from typing import Any

import django_q.cluster
from django.db import DatabaseError, connection, connections
from django_q.brokers import Broker
from django_q.cluster import Cluster, Sentinel, get_mp_context
from django_q.conf import Conf
from django_q.signing import SignedPackage
from django_q.worker import worker

from agents.kernel.features import Preload, collect
from agents.services.machines.membership import join_machine, refuse_nameless
from agents.settings import MachineSettings
from agents.tasks import prepare_worker
from velproject.lives import Life
from velproject.mortal import Event, Queue, TooLarge

logger = logging.getLogger("django-q")

PATIENCE = 5.0
"""Seconds after which the holder of a lock counts as dead. A living one needs microseconds."""


CONNECTION_SECONDS = 60
"""How long the pusher keeps a connection."""
WORKER_SECONDS = 0.01
"""Interval at which the pusher checks whether a worker has taken the last task."""


class MortalLock:
    """A re-entrant lock between processes that stops waiting if nobody releases it.

    The process then continues without the lock: for a timer, the worst result is one lost count.
    Only one thread of each process may use it, as in django-q2.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self._lock = RLock()
        self._patience = patience
        self._held: list[bool] = []

    def acquire(self) -> bool:
        held = self._lock.acquire(timeout=self._patience)
        self._held.append(held)
        # The holder is probably dead, so the next call waits less.
        self._patience = self._patience if held else 0.0
        return held

    def release(self) -> None:
        if self._held.pop():
            self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def keep_connection() -> None:
    """Keep this process's connection to the database open between queries of the queue.

    The pusher looks for tasks ten times a second. With Django's default, every query would open a
    connection, and PostgreSQL would start a process for it.
    """
    wrapper = connections[Conf.ORM or "default"]
    given = wrapper.settings_dict
    if not given["CONN_MAX_AGE"] and "pool" not in given["OPTIONS"]:
        # Replace a connection that PostgreSQL has closed, for example at a restart.
        kept = {"CONN_MAX_AGE": CONNECTION_SECONDS, "CONN_HEALTH_CHECKS": True}
        wrapper.settings_dict = {**given, **kept}


def push(tasks: Queue, stop: Event, broker: Broker) -> None:
    """Send tasks from the database to the workers of this cluster, one at a time.

    The other tasks stay in the database, so that other hosts can take them.
    """
    keep_connection()
    logger.info("%s pushing tasks at %s", current_process().name, current_process().pid)
    while not stop.is_set():
        if not tasks.empty():
            time.sleep(WORKER_SECONDS)
            continue
        for task_id, payload in broker.dequeue() or ():
            try:
                task = SignedPackage.loads(payload)
                tasks.put({**task, "cluster": Conf.CLUSTER_NAME, "ack_id": task_id})
            except Exception:  # one bad task must not stop the others
                logger.exception("cannot send a task to the workers")
                broker.fail(task_id)


class Results(Queue):
    """The queue of the results of tasks."""

    def put(self, message: Any) -> None:
        try:
            super().put(message)
        except TooLarge as error:
            logger.error("the result of the task %s is dropped: %s", message["name"], error)
            super().put({**message, "result": str(error), "args": (), "kwargs": {}})


def work(life: Life, name: str, *arguments: object) -> None:
    """Run a worker process with this name."""
    prepare_worker(suffix=name, dead=tuple(life.dead), on_claim=life.say_that_it_works)
    worker(*arguments)


class VelSentinel(Sentinel):
    """The guard of a cluster, which restarts its processes and never waits for a dead one."""

    def __init__(self, life: Life, *arguments: object) -> None:
        self._life = life
        self._names: dict[Process, str] = {}
        super().__init__(*arguments)  # returns when the cluster ends

    def start(self) -> None:
        self.result_queue = Results()
        super().start()

    def spawn_pusher(self) -> Process:
        process: Process = self.spawn_process(push, self.task_queue, self.event_out, self.broker)
        return process

    def spawn_worker(self) -> None:
        # Any lock is accepted here, although the type of `Value` does not say so.
        lock: Any = MortalLock()
        timer = Value("f", -1, lock=lock)
        name = self._life.next_worker()
        shared = (self.task_queue, self.result_queue, timer, self.timeout)
        process = get_mp_context().Process(target=work, args=(self._life, name, *shared))
        process.daemon = Conf.DAEMONIZE_WORKERS
        process.timer = timer
        self._names[process] = name
        self.pool.append(process)
        process.start()

    def reincarnate(self, process: Process) -> None:
        """Replace a process that has died, or that hangs in a task."""
        name = self._names.pop(process, "")
        if name and not process.is_alive():  # also reaps the process
            self._life.dead.append(name)
        super().reincarnate(process)


class VelCluster(Cluster):
    def __init__(self, life: Life) -> None:
        super().__init__()
        self._life = life

    def start(self) -> int:
        # django-q2 looks up these names in its module.
        django_q.cluster.Sentinel = partial(VelSentinel, self._life)
        django_q.cluster.Queue = Queue
        django_q.cluster.Event = Event
        pid: int = super().start()
        return pid


def modules_of_features() -> list[str]:
    """Return the modules that workers need for the features of this installation.

    Each module is in `preload.PRELOAD` of a feature. If the database is unreachable, these are the
    modules of all features.
    """
    try:
        return [
            name
            for _, each in collect("preload", "PRELOAD")
            if _needed(each)
            for name in each.modules
        ]
    finally:
        connections.close_all()


def _needed(preload: Preload) -> bool:
    try:
        return preload.needed is None or preload.needed()
    except DatabaseError:
        return True


def join_before_forks() -> None:
    """Register this host, if it has a name (`VEL_HOST`), before the first worker starts.

    Raises `MachineRefused` with the reason if this host may not start workers. If the database is
    unreachable, workers may start: they wait for it themselves.
    """
    try:
        if MachineSettings.now().HOST:
            join_machine()
        elif connection.vendor == "postgresql":
            refuse_nameless()
    except DatabaseError:
        return
    finally:
        connections.close_all()
