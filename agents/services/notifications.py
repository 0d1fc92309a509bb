"""Telling people that something waits: a row for each message, written with the request.

A row is truth, the task only a hint: every worker process looks for messages that are due.
"""

from __future__ import annotations

from django.db import connection
from django.db.models import Q
from django.utils import timezone
from django_q.tasks import async_task

from agents.models import (
    POOL,
    AgentVersion,
    ApprovalRequest,
    Notification,
    NotificationStatus,
    NotificationTarget,
    ScheduleFiring,
)

DELIVER_TASK = "agents.tasks.deliver_notifications"
MOST_TARGETS = 50
"""That one look finds at most; the next look finds the others."""


def notify_of(request: ApprovalRequest) -> None:
    """Put a message about a new request on its way, in the request's transaction.

    Without targets this is one query. A run of one process sends no task, since there may be no
    workers to take it: whichever worker looks next finds the rows.
    """
    targets = _targets_of(request)
    if not targets:
        return
    now = timezone.now()
    Notification.objects.bulk_create(
        Notification(target_id=target, request=request, next_attempt_at=now) for target in targets
    )
    if request.run.executor == POOL:
        enqueue_deliveries(targets)


def notify_of_firing(firing: ScheduleFiring) -> None:
    """Put a message about a scheduled run that was not started on its way, in its transaction."""
    found = NotificationTarget.objects.filter(
        Q(agent=None) | Q(agent=firing.schedule.agent_id), is_active=True
    )
    # Locked for the reason that `_targets_of` gives; this is rare enough for a stronger lock.
    locked = found.select_for_update(no_key=True).order_by("pk")
    targets = list(locked.values_list("pk", flat=True))
    if not targets:
        return
    now = timezone.now()
    Notification.objects.bulk_create(
        Notification(target_id=target, firing=firing, next_attempt_at=now) for target in targets
    )
    enqueue_deliveries(targets)


def enqueue_deliveries(targets: list[str]) -> None:
    """Ask a worker to send now what is due to these targets."""
    async_task(DELIVER_TASK, targets)


def due_targets() -> list[str]:
    """Active targets to which something is due, the longest due first."""
    due = Notification.objects.filter(
        status=NotificationStatus.PENDING,
        next_attempt_at__lte=timezone.now(),
        target__is_active=True,
    )
    found = due.order_by("next_attempt_at").values_list("target_id", flat=True)
    # A few targets with many messages each: more rows than targets are looked at.
    return list(dict.fromkeys(found[: MOST_TARGETS * 20]))[:MOST_TARGETS]


def _targets_of(request: ApprovalRequest) -> list[str]:
    """Targets of the request's agent, and those of all agents.

    Raw for its lock: on PostgreSQL a target that is removed in this moment would otherwise let the
    run's own transaction fail at its commit. The lock excludes nobody who only reads or changes it.
    """
    target, version = NotificationTarget._meta.db_table, AgentVersion._meta.db_table
    sql = (
        f'SELECT id FROM "{target}" WHERE is_active AND (agent_id IS NULL OR agent_id ='  # noqa: S608
        f' (SELECT agent_id FROM "{version}" WHERE id = %s)) ORDER BY id'
    )
    if connection.vendor == "postgresql":
        sql += " FOR KEY SHARE"
    with connection.cursor() as cursor:
        cursor.execute(sql, [request.run.agent_version_id])
        return [row[0] for row in cursor.fetchall()]
