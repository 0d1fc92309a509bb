"""Rows and rights of schedules and webhooks move with them from the app agents to their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from agents.features.inbound_webhooks.models import InboundWebhook, InboundWebhookRefusal
from agents.features.schedules.models import Schedule
from agents.models import Allowance, Budget, Run
from agents.secret_text import SecretText

pytestmark = pytest.mark.both_databases
BEFORE = ("agents", "0011_machine")


@pytest.fixture
def model(transactional_db: None) -> Iterator[Any]:
    """A function that returns a model as it was before the move, by the name of app and model."""
    call_command("migrate", *BEFORE, verbosity=0)
    yield MigrationExecutor(connection).loader.project_state(BEFORE).apps.get_model
    call_command("migrate", verbosity=0)
    ContentType.objects.clear_cache()


def make_run(model: Any, **fields: Any) -> Any:
    agent, _ = model("agents", "Agent").objects.get_or_create(slug="writer", name="Writer")
    version, _ = model("agents", "AgentVersion").objects.get_or_create(
        agent=agent, number=1, defaults={"spec": {}}
    )
    owner = model("auth", "User").objects.get(username="ann")
    thread = model("agents", "Thread").objects.create(agent=agent, owner=owner)
    return model("agents", "Run").objects.create(
        thread=thread, number=1, agent_version=version, owner=owner, **fields
    )


def allow(codename: str) -> User:
    ann = User.objects.get(username="ann")
    ann.user_permissions.add(
        Permission.objects.get(codename=codename, content_type__app_label="agents")
    )
    return ann


def test_webhooks(model: Any) -> None:
    ann = model("auth", "User").objects.create(username="ann")
    alone = make_run(model)
    hook = model("agents", "InboundWebhook").objects.create(
        name="Issues",
        owner=ann,
        agent=alone.agent_version.agent,
        message="Hello",
        secret=SecretText.seal("whsec_secret"),
        former_secret=SecretText(""),
        thread=alone.thread,
    )
    run = make_run(model, hook=hook, source="hook")
    child = make_run(model, hook=hook, source="subagent", parent=run)
    hook.deliveries.create(key="k", body_sha256="", size=2, outcome="started", run=run)
    model("agents", "InboundWebhookRefusal").objects.create(
        subject=hook.pk, day=timezone.now().date(), reason="paused", last_at=timezone.now()
    )
    budget = model("agents", "Budget").objects.create(hook=hook, max_tokens=9)
    model("agents", "Allowance").objects.create(budget=budget, window="2026-11", used_tokens=4)
    user = allow("change_inboundwebhook")

    call_command("migrate", verbosity=0)

    moved = InboundWebhook.objects.get()
    assert (moved.pk, moved.owner, moved.thread_id) == (hook.pk, user, alone.thread_id)
    assert moved.secret.reveal() == "whsec_secret"
    assert (moved.deliveries.get().run_id, InboundWebhookRefusal.objects.get().subject) == (
        run.pk,
        hook.pk,
    )
    assert dict(Run.objects.values_list("pk", "trigger")) == {
        alone.pk: None,
        run.pk: hook.pk,
        child.pk: hook.pk,
    }
    kept = Budget.objects.get()
    assert (kept.pk, kept.trigger, kept.of) == (budget.pk, hook.pk, "the webhook Issues")
    assert Allowance.objects.get().used_tokens == 4
    assert User.objects.get(pk=ann.pk).has_perm("vel_inbound_webhooks.change_inboundwebhook")
    assert Permission.objects.filter(codename="change_inboundwebhook").count() == 1
    # Its rows get ids after those that moved.
    assert moved.deliveries.create(key="l", body_sha256="", size=2, outcome="started").pk


def test_the_way_back_without_webhooks(model: Any) -> None:
    call_command("migrate", verbosity=0)
    ann = User.objects.create(username="ann")
    from tests.agents.features.inbound_webhooks.rows import DayBudget, make_inbound_webhook

    make_inbound_webhook(ann, budget=DayBudget(max_tokens=9))
    call_command("migrate", *BEFORE, verbosity=0)
    assert not model("agents", "InboundWebhook").objects.exists()
    assert not model("agents", "Budget").objects.exists()


def test_schedules(model: Any) -> None:
    ann = model("auth", "User").objects.create(username="ann")
    alone = make_run(model)
    schedule = model("agents", "Schedule").objects.create(
        name="Daily",
        owner=ann,
        agent=alone.agent_version.agent,
        message="Hello",
        cron="0 9 * * *",
        due_at=timezone.now(),
    )
    run = make_run(model, schedule=schedule, source="schedule")
    child = make_run(model, schedule=schedule, source="subagent", parent=run)
    firing = schedule.firings.create(due_at=timezone.now(), outcome="started", run=run)
    user = allow("change_schedule")

    call_command("migrate", verbosity=0)

    moved = Schedule.objects.get()
    assert (moved.pk, moved.owner, moved.due_at) == (schedule.pk, user, schedule.due_at)
    assert (moved.firings.get().pk, moved.firings.get().run_id) == (firing.pk, run.pk)
    assert dict(Run.objects.values_list("pk", "trigger")) == {
        alone.pk: None,
        run.pk: schedule.pk,
        child.pk: schedule.pk,
    }
    assert User.objects.get(pk=ann.pk).has_perm("vel_schedules.change_schedule")
    rights = Permission.objects.exclude(content_type__app_label="django_q")
    assert rights.filter(codename="change_schedule").count() == 1
    assert moved.firings.create(due_at=timezone.now(), outcome="started").pk > firing.pk
