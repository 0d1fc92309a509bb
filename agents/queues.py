"""Brokers of django-q2 for Vel: `Q_CLUSTER["broker_class"]`.

A task of Vel is a hint. Each worker process also looks for the same work in Vel's rows, once a
second. Therefore, the brokers delete a task of Vel when they take it, and a killed worker leaves no
tasks behind. They delete other tasks when these are done, as django-q2 does.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime
from functools import cache

from django.db import Error, connections
from django.db.models import QuerySet
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.signing import SignedPackage

from agents.database_away import is_away
from agents.kernel.features import features
from agents.services.placement import queue_of
from agents.settings import MachineSettings

logger = logging.getLogger(__name__)

AWAY_SECONDS = 1.0
"""The pause before the next try if the database cannot be reached."""
OWN = "agents.tasks."
"""The module of Vel's tasks. The tasks of a feature are in its module `tasks`."""


class TaskQueue(ORM):
    """The queue of one machine."""

    def dequeue(self) -> list[tuple[int | None, str]] | None:
        """Take tasks: (id, payload). Without an id it needs no acknowledgement."""
        try:
            return self._dequeue()
        except Error as error:
            if not is_away(error):
                raise
            logger.warning("cannot read the queue, next try in %g s: %s", AWAY_SECONDS, error)
            connections[Conf.ORM].close()
            time.sleep(AWAY_SECONDS)
            return None

    def _dequeue(self) -> list[tuple[int | None, str]] | None:
        rows = self.get_connection()
        due = rows.filter(key__in=self.keys(), lock__lt=timezone.now()).order_by("pk")
        taken = [got for task in due[: Conf.BULK] if (got := self._take(rows, task)) is not None]
        if not taken:
            time.sleep(Conf.POLL)
        return taken or None

    def keys(self) -> list[str]:
        """Return the names of the queues that this broker reads."""
        return [self.list_key]

    def _take(self, rows: QuerySet[OrmQ], task: OrmQ) -> tuple[int | None, str] | None:
        mine = rows.filter(pk=task.pk, lock=task.lock)  # empty if another cluster has taken it
        if is_own(task.payload):
            removed, _ = mine.delete()
            return (None, task.payload) if removed else None
        until: datetime = self.timeout(task)
        return (task.pk, task.payload) if mine.update(lock=until) else None


class MachineQueue(TaskQueue):
    """The queue of one of several hosts.

    It reads two queues, because a second cluster would double the number of processes.
    """

    def keys(self) -> list[str]:
        """Return the names of the common queue and of this host's queue.

        Another cluster, or a host without a name, reads only its own queue.
        """
        if self.list_key == Conf.CLUSTER_NAME and MachineSettings.now().HOST:
            return [self.list_key, queue_of(MachineSettings.now().HOST)]
        return super().keys()


def is_own(payload: str) -> bool:
    """Return whether this is a task of Vel."""
    try:
        function = SignedPackage.loads(payload)["func"]
    except Exception:  # noqa: BLE001  # the pusher reads it too, and logs the error
        return False
    return isinstance(function, str) and function.startswith(_own_modules())


@cache
def _own_modules() -> tuple[str, ...]:
    return (OWN, *(f"{feature.name}.tasks." for feature in features()))
