"""The audit log in the admin: the entries of its actions, and that no user can change it."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.test import RequestFactory
from django.urls import reverse

from agents.models import AuditEntry, Door
from agents.models.audit import AuditIsSealed
from agents.secret_text import SecretText
from agents.services.audit import LONGEST_TEXT, Origin, acting, record
from tests.agents.admin import rows
from tests.agents.admin.audit_table import DONE, OTHERS, user_form
from tests.agents.admin.pages import act, client_of, list_url, page_url, text_of

pytestmark = pytest.mark.django_db

CSV = "admin:agents_auditentry_csv"


def errors_of(response: Any) -> Any:
    form = response.context and response.context.get("adminform")
    return form and form.form.errors


def test_every_change_in_the_admin_is_recorded():
    """Add a new action of the admin to one of the tables of `audit_table`."""
    request = RequestFactory().get("/")
    request.user = rows.superuser()
    there = set()
    for model, page in admin.site._registry.items():
        label = model._meta.label
        if label in OTHERS:
            continue
        for word in ("add", "change", "delete"):
            if getattr(page, f"has_{word}_permission")(request):
                there.add(f"{label} {word}")
        there |= {f"{label} {name}" for name in page.get_actions(request)}
    there = {name for name in there if not name.endswith(" delete_selected")}

    assert there == set(DONE) | {name for name in OTHERS if " " in name}


@pytest.mark.parametrize("what", sorted(DONE))
def test_it_is_in_the_audit_log(what: str):
    root = rows.superuser()
    send, action = DONE[what]

    response = send(client_of(root))

    found = AuditEntry.objects.filter(action=action, door=Door.ADMIN)
    assert found.count() == 1, errors_of(response)
    entry = found.get()
    assert (entry.actor, entry.actor_id, entry.address) == ("root", str(root.pk), "127.0.0.1")
    told = str(list(AuditEntry.objects.values()))
    assert [secret for secret in ("hunter2", "s3cret", "md5$", "whsec_") if secret in told] == []


def test_several_are_deleted_with_an_entry_each():
    first, second = rows.agent("one"), rows.agent("two")

    act(client_of(rows.superuser()), "delete_selected", first, second, post="yes")

    deleted = AuditEntry.objects.filter(action="agent.deleted").values_list("target", flat=True)
    assert sorted(deleted) == ["one", "two"]


def test_an_entry_shows_values_before_and_after():
    ada = rows.user()
    team = Group.objects.create(name="team")
    may = Permission.objects.get(codename="approve_toolcall")
    client = client_of(rows.superuser())

    page = reverse("admin:auth_user_change", args=[ada.pk])
    client.post(page, user_form(groups=[team.pk], user_permissions=[may.pk], is_superuser="on"))
    client.post(
        reverse("admin:auth_user_password_change", args=[ada.pk]),
        {"usable_password": "true", "password1": "quite another 1", "password2": "quite another 1"},
    )

    password, change = AuditEntry.objects.filter(kind="user")
    assert change.changes == {
        "is_superuser": [False, True],
        "groups": [[], ["team"]],
        "permissions": [[], ["agents.approve_toolcall"]],
    }
    assert (password.action, password.changes) == ("user.password_changed", {})
    text = text_of(client.get(page_url(change)))
    assert "agents.approve_toolcall" in text


def test_entries_cannot_be_changed_or_deleted():
    root = rows.superuser()
    rows.agent("helper")
    entry = AuditEntry.objects.get()
    client = client_of(root)

    posts = [
        client.post(page_url(entry), {"actor": "eve"}),
        client.post(reverse("admin:agents_auditentry_delete", args=[entry.pk]), {"post": "yes"}),
        client.get(reverse("admin:agents_auditentry_add")),
        client.post(reverse("admin:agents_auditentry_add"), {"actor": "eve"}),
    ]
    client.post(
        list_url(AuditEntry),
        {"action": "delete_selected", "_selected_action": [entry.pk], "post": "yes"},
    )
    for attempt in (
        entry.delete,
        AuditEntry.objects.all().delete,
        lambda: AuditEntry.objects.update(actor="eve"),
        lambda: AuditEntry._base_manager.update(actor="eve"),
        lambda: AuditEntry.objects.bulk_update([entry], ["actor"]),
        lambda: AuditEntry.objects.update_or_create(pk=entry.pk, defaults={"actor": "eve"}),
        lambda: AuditEntry.objects.bulk_create(
            [AuditEntry(pk=entry.pk, actor="eve")],
            update_conflicts=True,
            update_fields=["actor"],
            unique_fields=["id"],
        ),
        entry.save,
    ):
        with pytest.raises(AuditIsSealed):
            attempt()

    assert [response.status_code for response in posts] == [403] * 4
    assert AuditEntry.objects.get().created_at == entry.created_at


def test_entries_outlast_their_authors():
    ada = rows.user()
    record("x.y", ada, by=ada)
    client_of(rows.superuser()).post(
        reverse("admin:auth_user_delete", args=[ada.pk]), {"post": "yes"}
    )

    assert not User.objects.filter(username="ada").exists()
    found = AuditEntry.objects.values_list("action", "actor", "target_id")
    assert list(found) == [("user.deleted", "root", str(ada.pk)), ("x.y", "ada", str(ada.pk))]


def test_an_entry_outside_of_the_transaction_of_its_change_is_refused(transactional_db: None):
    with pytest.raises(ImproperlyConfigured):
        record("agent.changed", rows.user())
    with transaction.atomic():
        record("agent.changed", rows.user("eve"))
        transaction.set_rollback(True)
    assert not AuditEntry.objects.exists()


def test_secrets_and_long_texts_are_left_out():
    ada = rows.user()
    sealed = SecretText.seal("hunter2")
    entry = record(
        "x.y",
        ada,
        changes={
            "url": (None, sealed),
            "deep": (None, {"a": [sealed]}),
            "long": ("", "x" * 10_000),
            "same": (1, 1),
            "nul": ("", "a\x00b"),
        },
    )

    stored = AuditEntry.objects.get(pk=entry.pk).changes
    assert set(stored) == {"url", "deep", "long", "nul"}
    assert stored["url"] == [None, "(secret)"]
    assert stored["deep"] == [None, {"a": ["(secret)"]}]
    assert len(stored["long"][1]) < LONGEST_TEXT + 200
    assert "10,000 characters" in stored["long"][1]


def test_a_door_that_names_another_person_than_the_service_is_not_believed():
    ada, eve = rows.user(), rows.user("eve")
    with acting(lambda: Origin(Door.API, person=eve)):
        assert record("x.y", ada, by=ada).actor == "ada"
        assert record("x.y", ada, by=ada.pk).actor == "ada"
        assert record("x.y", ada).actor == "eve"
    assert record("x.y", ada).actor == ""


def test_the_list_is_filtered_searched_and_exported():
    root = rows.superuser()
    for name in ("=cmd|' /C calc'!A0", "helper", "\u202eother"):
        record("agent.changed", root, name=name, note="-1+2")
    rows.agent("helper2")
    client = client_of(rows.staff("auditor", "view_auditentry"))

    text = text_of(client.get(f"{list_url(AuditEntry)}?q=other"))
    assert "⟨U+202E⟩other" in text
    assert "helper" not in text
    assert "agent.created" in text_of(client.get(f"{list_url(AuditEntry)}?action=agent.created"))

    answer = client.get(f"{reverse(CSV)}?action=agent.changed")
    table = list(csv.DictReader(io.StringIO(text_of(answer))))
    assert answer["Content-Disposition"] == 'attachment; filename="audit.csv"'
    told = {row["target"] for row in table}
    assert told == {"\u202eother", "helper", "'=cmd|' /C calc'!A0"}
    assert {row["note"] for row in table} == {"'-1+2"}
    assert client_of(root).get(reverse(CSV)).status_code == 200


def test_without_the_permission_nothing_is_shown():
    rows.agent("helper")
    entry = AuditEntry.objects.get()
    client = client_of(rows.staff("ed", "view_agent", "change_agent", "view_all_runs"))

    for url in (list_url(AuditEntry), page_url(entry), reverse(CSV)):
        assert client.get(url).status_code == 403
