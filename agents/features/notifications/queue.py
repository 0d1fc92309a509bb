"""Queue messages about notices: one row for each target, in the notice's transaction.

The rows are authoritative and the task is only a hint: every worker process polls for due messages.
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
"""Most targets that one poll finds; the next poll finds the others."""


def notify_of(notice: Notice) -> None:
    """Queue messages about a notice, in its transaction.

    Without targets this is one query. A notice without `for_workers` sends no task, since there may
    be no workers: the next poll of any worker finds the rows.
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
    """Ask a worker to send the due messages of these targets now."""
    async_task(DELIVER_TASK, targets)


def due_targets() -> list[str]:
    """Return the ids of active targets with due messages, the longest due first.

    At most `MOST_TARGETS`.
    """
    due = Notification.objects.filter(
        status=NotificationStatus.PENDING,
        next_attempt_at__lte=timezone.now(),
        target__is_active=True,
    )
    found = due.order_by("next_attempt_at").values_list("target_id", flat=True)
    # A few targets can have many messages each, so more rows than targets are read.
    return list(dict.fromkeys(found[: MOST_TARGETS * 20]))[:MOST_TARGETS]


def _targets_of(notice: Notice) -> list[str]:
    """Return the targets of the notice's agent, and those of all agents.

    Raw SQL because of its lock: on PostgreSQL, a target that is removed now would otherwise fail
    the run's own transaction at its commit. The lock does not block readers or other changes.
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
