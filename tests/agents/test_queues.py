"""Tasks leave the queue: Vel's own when they are taken, others when they are done."""

from __future__ import annotations

import pytest
from django.utils import timezone
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.tasks import async_task

from agents.features.notifications.queue import DELIVER_TASK
from agents.queues import TaskQueue
from agents.services.erasure.actions import FINISH_TASK
from agents.services.runs.wake import DRIVE_TASK

pytestmark = pytest.mark.django_db


def queue() -> TaskQueue:
    return TaskQueue(Conf.CLUSTER_NAME)


@pytest.mark.parametrize("function", [DRIVE_TASK, DELIVER_TASK, FINISH_TASK])
def test_a_task_of_vel_is_removed_when_it_is_taken(function: str) -> None:
    async_task(function, "x")
    payload = OrmQ.objects.get().payload
    assert queue().dequeue() == [(None, payload)]
    assert not OrmQ.objects.exists()
    assert queue().dequeue() is None


def test_another_task_is_removed_when_it_is_done() -> None:
    async_task("time.time")
    row = OrmQ.objects.get()
    assert queue().dequeue() == [(row.pk, row.payload)]
    assert queue().dequeue() is None
    assert OrmQ.objects.get().lock > timezone.now()
    queue().acknowledge(row.pk)
    assert not OrmQ.objects.exists()


def test_a_task_that_cannot_be_read_is_left_to_the_pusher() -> None:
    row = OrmQ.objects.create(key=Conf.CLUSTER_NAME, payload="no task", lock=timezone.now())
    assert queue().dequeue() == [(row.pk, "no task")]


def test_two_clusters_do_not_take_one_task() -> None:
    async_task(DRIVE_TASK, "x")
    seen = OrmQ.objects.get()
    assert queue()._take(OrmQ.objects.all(), seen) is not None
    assert queue()._take(OrmQ.objects.all(), seen) is None
