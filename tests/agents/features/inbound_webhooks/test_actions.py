"""Owners and permissions of webhooks, refused values, and fields that a change keeps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.utils import timezone

from agents.features.budgets.models import Budget
from agents.features.inbound_webhooks import actions
from agents.features.inbound_webhooks.actions import (
    LONGEST_OVERLAP,
    DayBudget,
    change_inbound_webhook,
    create_inbound_webhook,
    delete_inbound_webhook,
    enable_inbound_webhook,
    rotate_secret,
)
from agents.features.inbound_webhooks.models import InboundWebhook
from agents.models import AuditEntry, Run, Thread, ThreadPolicy
from agents.services.errors import Conflict, InvalidRequest, NotAllowed, NotFound
from agents.services.runs.trigger_rights import MESSAGE_CHARACTERS
from tests.agents.api.rows import make_agent, make_run, make_user
from tests.agents.features.inbound_webhooks.rows import make_inbound_webhook

pytestmark = pytest.mark.django_db


def new_hook(owner: User, **fields: Any) -> InboundWebhook:
    agent = fields.pop("agent", None) or make_agent()
    return InboundWebhook(**{"owner": owner, "agent": agent, "name": "N", "message": "M", **fields})


def test_only_the_owner_creates_and_changes_a_webhook():
    """Only the owner can create or change a hook and read its secret. Operators can stop it."""
    ada, eve, olga = make_user("ada"), make_user("eve"), make_user("olga")
    olga.user_permissions.add(Permission.objects.get(codename="change_inboundwebhook"))
    agent = make_agent()
    hook, _ = make_inbound_webhook(ada, agent=agent)
    secret = hook.secret.reveal()
    for other in (eve, olga):
        acts: list[Callable[[], object]] = [
            lambda: create_inbound_webhook(new_hook(ada, agent=agent), by=other),  # noqa: B023
            lambda: change_inbound_webhook(InboundWebhook.objects.get(), by=other),  # noqa: B023
            lambda: rotate_secret(hook.pk, by=other),  # noqa: B023
        ]
        for act in acts:
            with pytest.raises(NotAllowed, match="Only its owner"):
                act()
    for stop in (
        lambda: enable_inbound_webhook(hook.pk, False, by=eve),
        lambda: delete_inbound_webhook(hook.pk, by=eve),
    ):
        with pytest.raises(NotAllowed, match="change_inboundwebhook"):
            stop()
    stored = InboundWebhook.objects.get()
    assert (stored.secret.reveal(), stored.is_enabled) == (secret, True)

    enable_inbound_webhook(hook.pk, False, by=olga)
    delete_inbound_webhook(hook.pk, by=olga)
    assert not InboundWebhook.objects.exists()
    actions = AuditEntry.objects.filter(kind="hook").order_by("id").values_list("action", "actor")
    assert list(actions) == [
        ("hook.created", "ada"),
        ("hook.changed", "olga"),
        ("hook.deleted", "olga"),
    ]


def test_owner_and_signing_cannot_be_changed():
    """A new owner would get the old owner's runs; another signing needs another secret."""
    ada, eve = make_user("ada"), make_user("eve")
    hook, _ = make_inbound_webhook(ada)
    for name, value in (("owner", eve), ("signing", "github")):
        changed = InboundWebhook.objects.get()
        setattr(changed, name, value)
        with pytest.raises(
            InvalidRequest, match="The owner and the signing of a webhook cannot change"
        ):
            change_inbound_webhook(changed, by=changed.owner)
    stored = InboundWebhook.objects.get()
    assert (stored.owner, stored.signing) == (ada, hook.signing)


def test_another_agent_gets_its_own_thread():
    ada, agent = make_user("ada"), make_agent()
    make_inbound_webhook(ada, agent=agent, thread_policy=ThreadPolicy.ONE)
    thread = Thread.objects.create(owner=ada, agent=agent)
    InboundWebhook.objects.update(thread=thread)
    opened = InboundWebhook.objects.get()
    opened.name = "Other"
    assert change_inbound_webhook(opened, by=ada).thread == thread
    opened.agent = make_agent("other")
    change_inbound_webhook(opened, by=ada)

    assert InboundWebhook.objects.get().thread is None


@pytest.mark.parametrize(
    "fields",
    [
        {"name": " "},
        {"message": " "},
        {"message": "a\x00"},
        {"message": "{{ schedule }}"},
        {"message": "x" * (MESSAGE_CHARACTERS + 1)},
        {"signing": "none"},
        {"thread_policy": "x"},
        {"per_minute": 0},
        {"per_minute": 601},
    ],
)
def test_invalid_webhooks_are_refused(fields: dict[str, Any]):
    ada, agent = make_user("ada"), make_agent()
    hook, _ = make_inbound_webhook(
        ada, agent=agent, message="x" * MESSAGE_CHARACTERS, per_minute=600
    )
    with pytest.raises(InvalidRequest):
        make_inbound_webhook(ada, agent=agent, **fields)
    for name, value in fields.items():
        setattr(hook, name, value)
    with pytest.raises(InvalidRequest):
        change_inbound_webhook(hook, by=ada)
    assert InboundWebhook.objects.count() == 1


def test_an_agent_of_others_is_not_found():
    ada = make_user("ada")
    hook, _ = make_inbound_webhook(ada)
    private = make_agent("private", owner=make_user("eve"), everyone=False)
    with pytest.raises(NotFound, match="The owner has no access to an agent"):
        make_inbound_webhook(ada, agent=private)
    hook.agent = private
    with pytest.raises(NotFound, match="The owner has no access to an agent"):
        change_inbound_webhook(hook, by=ada)


def test_how_many_one_person_may_have(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(actions, "MOST_HOOKS", 2)
    ada, agent = make_user("ada"), make_agent()
    make_inbound_webhook(make_user("bob"), agent=agent)
    for _ in range(2):
        make_inbound_webhook(ada, agent=agent)
    with pytest.raises(Conflict, match="2 webhooks"):
        make_inbound_webhook(ada, agent=agent)


@pytest.mark.parametrize("overlap", [-1, LONGEST_OVERLAP + 1])
def test_an_invalid_overlap_of_secrets_is_refused(overlap: int):
    ada = make_user("ada")
    hook, secret = make_inbound_webhook(ada)
    with pytest.raises(InvalidRequest, match="overlap"):
        rotate_secret(hook.pk, by=ada, overlap=overlap)
    assert InboundWebhook.objects.get().secret.reveal() == secret


def test_no_secret_is_kept_longer_than_it_is_taken():
    ada = make_user("ada")
    hook, first = make_inbound_webhook(ada)
    second = rotate_secret(hook.pk, by=ada, overlap=LONGEST_OVERLAP)
    stored = InboundWebhook.objects.get()
    assert (stored.secret.reveal(), stored.former_secret.reveal()) == (second, first)
    assert stored.former_until is not None
    left = stored.former_until - timezone.now()
    assert timedelta(seconds=LONGEST_OVERLAP - 60) < left <= timedelta(seconds=LONGEST_OVERLAP)

    rotate_secret(hook.pk, by=ada, overlap=0)
    stored = InboundWebhook.objects.get()
    assert (bool(stored.former_secret), stored.former_until) == (False, None)
    rotated = AuditEntry.objects.filter(action="hook.rotated")
    assert rotated.count() == 2
    assert first not in str([entry.__dict__ for entry in rotated])
    with pytest.raises(InvalidRequest, match="secret"):
        rotate_secret(hook.pk, by=ada, secret="too short")
    with pytest.raises(InvalidRequest, match="secret"):
        make_inbound_webhook(ada, agent=hook.agent, given="too short")


def test_its_budget():
    ada = make_user("ada")
    hook, _ = make_inbound_webhook(ada, budget=DayBudget(max_tokens=9, max_cost=Decimal(2)))
    change_inbound_webhook(hook, by=ada)  # without the field, the value stays
    assert Budget.objects.get().max_tokens == 9
    for wrong in (DayBudget(max_tokens=-1), DayBudget(max_cost=Decimal("-0.5"))):
        with pytest.raises(InvalidRequest, match="negative"):
            change_inbound_webhook(hook, by=ada, budget=wrong)
    change_inbound_webhook(hook, by=ada, budget=DayBudget(max_tokens=7))
    assert (Budget.objects.get().max_tokens, Budget.objects.get().max_cost) == (7, None)
    noted = AuditEntry.objects.filter(action="hook.changed").get()
    assert "max_tokens_a_day" in str(noted.__dict__)
    change_inbound_webhook(hook, by=ada, budget=DayBudget())
    assert not Budget.objects.exists()
    change_inbound_webhook(hook, by=ada, budget=DayBudget(max_tokens=1))
    delete_inbound_webhook(hook.pk, by=ada)
    assert not Budget.objects.exists()
    assert AuditEntry.objects.filter(action="budget.removed").count() == 2


def test_a_change_without_effect_is_not_in_the_audit_log():
    ada = make_user("ada")
    hook, _ = make_inbound_webhook(ada)
    change_inbound_webhook(InboundWebhook.objects.get(), by=ada)
    enable_inbound_webhook(hook.pk, True, by=ada)
    assert AuditEntry.objects.filter(kind="hook").count() == 1


def test_a_deleted_webhook_is_not_found():
    ada = make_user("ada")
    hook, _ = make_inbound_webhook(ada)
    read = InboundWebhook.objects.get()
    delete_inbound_webhook(hook.pk, by=ada)
    for act in (
        lambda: change_inbound_webhook(read, by=ada),
        lambda: rotate_secret(read.pk, by=ada),
        lambda: enable_inbound_webhook(read.pk, False, by=ada),
        lambda: delete_inbound_webhook(read.pk, by=ada),
    ):
        with pytest.raises(NotFound, match="no such webhook"):
            act()
    assert not InboundWebhook.objects.exists()


def test_a_deleted_webhook_leaves_its_runs_and_no_budget():
    ada = make_user("ada")
    make_inbound_webhook(ada, budget=DayBudget(max_tokens=9))
    run = make_run(ada)
    Run.objects.update(trigger=InboundWebhook.objects.get().pk)

    InboundWebhook.objects.all().delete()

    run.refresh_from_db()
    assert run.trigger is None
    assert not Budget.objects.exists()
