"""Notifications of the time when they were part of the app agents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from agents.features.notifications.models import Notification, NotificationTarget

BEFORE = ("agents", "0014_databases")

pytestmark = pytest.mark.both_databases


@pytest.fixture
def before(transactional_db: None) -> Iterator[Any]:
    """The models of then."""
    call_command("migrate", *BEFORE, verbosity=0)
    ContentType.objects.filter(app_label="vel_notifications").delete()
    yield MigrationExecutor(connection).loader.project_state(BEFORE).apps
    call_command("migrate", verbosity=0)
    ContentType.objects.clear_cache()


def told(before: Any) -> tuple[Any, Any]:
    """A notification of a request, and one of a scheduled run."""

    def create(model: str, **fields: Any) -> Any:
        return before.get_model("agents", model).objects.create(**fields)

    owner = User.objects.create_user("ann")
    agent = create("Agent", name="Ada", slug="ada")
    version = create("AgentVersion", agent=agent, number=1, spec={})
    thread = create("Thread", owner_id=owner.pk, agent=agent)
    run = create(
        "Run", thread=thread, agent_version=version, owner_id=owner.pk, number=1, attachments=[]
    )
    request = create("ApprovalRequest", run=run, tool="write_file", input={}, digest="d")
    schedule = create(
        "Schedule", owner_id=owner.pk, agent=agent, name="Daily", message="x", interval_seconds=60
    )
    firing = create("ScheduleFiring", schedule=schedule, due_at=timezone.now(), outcome="refused")
    target = create("NotificationTarget", kind="webhook", address="https://a.example/", secret="s")
    create("Notification", target=target, request=request, attempts=3)
    create("Notification", target=target, firing=firing, status="delivered")
    return request, firing


def test_rows_stay_and_know_what_they_tell_of(before: Any) -> None:
    request, firing = told(before)
    call_command("migrate", verbosity=0)
    assert NotificationTarget.objects.get().secret == "s"
    rows = Notification.objects.order_by("type")
    assert list(rows.values_list("type", "subject_id", "run_id", "attempts", "status")) == [
        ("approval.requested", request.pk, request.run_id, 3, "pending"),
        ("schedule.not_started", str(firing.pk), None, 0, "delivered"),
    ]


def test_rights_to_notifications_stay(before: Any) -> None:
    names = ("change_notification", "add_notificationtarget")
    rights = Permission.objects.filter(content_type__app_label="agents", codename__in=names)
    group, ann = Group.objects.create(name="operators"), User.objects.create(username="bob")
    group.permissions.set(rights)
    ann.user_permissions.set(rights)
    kept = set(rights.values_list("pk", flat=True))
    assert len(kept) == 2
    call_command("migrate", verbosity=0)
    assert set(group.permissions.values_list("pk", flat=True)) == kept
    assert all(ann.has_perm(f"vel_notifications.{name}") for name in names)
    stale = ContentType.objects.filter(app_label="agents", model__startswith="notification")
    assert not stale.exists()
