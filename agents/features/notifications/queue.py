"""Telling people of what is announced: a row for each message, written with what it tells.

A row is truth, the task only a hint: every worker process looks for messages that are due.
"""

from __future__ import annotations

from django.db import connection
from django.utils import timezone
from django_q.tasks import async_task

from agents.features.notifications.models import (
    Notification,
    NotificationStatus,
    NotificationTarget,
)
from agents.kernel.notices import Notice
from agents.models import AgentVersion

DELIVER_TASK = "agents.features.notifications.tasks.deliver"
MOST_TARGETS = 50
"""That one look finds at most; the next look finds the others."""


def notify_of(notice: Notice) -> None:
    """Put messages about a notice on their way, in its transaction.

    Without targets this is one query. A run of one process sends no task, since there may be no
    workers to take it: whichever worker looks next finds the rows.
    """
    targets = _targets_of(notice)
    if not targets:
        return
    now = timezone.now()
    Notification.objects.bulk_create(
        Notification(
            target_id=target,
            type=notice.type,
            subject_id=notice.subject_id,
            run_id=notice.run_id or None,
            next_attempt_at=now,
        )
        for target in targets
    )
    if notice.for_workers:
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


def _targets_of(notice: Notice) -> list[str]:
    """Targets of the notice's agent, and those of all agents.

    Raw for its lock: on PostgreSQL a target that is removed in this moment would otherwise let the
    run's own transaction fail at its commit. The lock excludes nobody who only reads or changes it.
    """
    target, version = NotificationTarget._meta.db_table, AgentVersion._meta.db_table
    agent = "%s" if notice.agent_id else f'(SELECT agent_id FROM "{version}" WHERE id = %s)'  # noqa: S608
    sql = (
        f'SELECT id FROM "{target}" WHERE is_active AND (agent_id IS NULL OR agent_id = {agent})'  # noqa: S608
        " ORDER BY id"
    )
    if connection.vendor == "postgresql":
        sql += " FOR KEY SHARE"
    with connection.cursor() as cursor:
        cursor.execute(sql, [notice.agent_id or notice.agent_version_id])
        return [row[0] for row in cursor.fetchall()]
