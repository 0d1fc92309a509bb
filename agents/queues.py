"""The queue of one of several hosts: `Q_CLUSTER["broker_class"] = "agents.queues.HostQueue"`."""

from __future__ import annotations

import time

from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf

from agents.conf import vel_settings
from agents.services.placement import queue_of


class HostQueue(ORM):
    """django-q2's own broker, which also reads the tasks for this host.

    One cluster reads one key; two would need twice the processes.
    """

    def dequeue(self) -> list[tuple[int, str]] | None:
        keys = [self.list_key]
        if self.list_key == Conf.CLUSTER_NAME and vel_settings().HOST:
            keys.append(queue_of(vel_settings().HOST))
        rows = self.get_connection()
        due = rows.filter(key__in=keys, lock__lt=timezone.now()).order_by("pk")[: Conf.BULK]
        taken = [
            (task.pk, task.payload)
            for task in due
            if rows.filter(pk=task.pk, lock=task.lock).update(lock=self.timeout(task))
        ]
        if not taken:
            time.sleep(Conf.POLL)
        return taken or None
