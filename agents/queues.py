"""django-q2's broker for the tasks of Vel: `Q_CLUSTER["broker_class"]`.

Vel's own tasks only say that there is work in other rows, which each worker process also finds by
itself. So such a task is removed when it is taken, and a worker that is killed leaves none behind.
Other tasks are as in django-q2: removed when they have been done.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime

from django.db import Error, connections
from django.db.models import QuerySet
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.signing import SignedPackage

from agents.conf import vel_settings
from agents.database_away import is_away
from agents.services.placement import queue_of

logger = logging.getLogger(__name__)

AWAY_SECONDS = 1.0
"""The pause before the next look, when the database is away."""
OWN = "agents.tasks."
"""What the functions of Vel's tasks begin with."""


class TaskQueue(ORM):
    """The queue of one machine."""

    def dequeue(self) -> list[tuple[int | None, str]] | None:
        """Take a task: (id, payload). The id of one that needs no acknowledgement is None."""
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
        """The queues that are read."""
        return [self.list_key]

    def _take(self, rows: QuerySet[OrmQ], task: OrmQ) -> tuple[int | None, str] | None:
        mine = rows.filter(pk=task.pk, lock=task.lock)  # unless another cluster was faster
        if is_own(task.payload):
            removed, _ = mine.delete()
            return (None, task.payload) if removed else None
        until: datetime = self.timeout(task)
        return (task.pk, task.payload) if mine.update(lock=until) else None


class HostQueue(TaskQueue):
    """The queue of one of several hosts, with the tasks for this host.

    One cluster reads one key; two would need twice the processes.
    """

    def keys(self) -> list[str]:
        """The queue of all hosts, and this host's own."""
        if self.list_key == Conf.CLUSTER_NAME and vel_settings().HOST:
            return [self.list_key, queue_of(vel_settings().HOST)]
        return super().keys()


def is_own(payload: str) -> bool:
    """Whether this is a task of Vel."""
    try:
        function = SignedPackage.loads(payload)["func"]
    except Exception:  # noqa: BLE001  # the pusher reads it, too, and says what is wrong
        return False
    return isinstance(function, str) and function.startswith(OWN)
