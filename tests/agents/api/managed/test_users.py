"""Users and groups by REST: people give only permissions that they have."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from agents.models import AuditEntry
from tests.agents.api.managed.rows import operator, patch, post
from tests.agents.api.rows import client_for, make_user, problem_of

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
URL = "/api/v1/users"
GROUPS = "/api/v1/groups"
ALL = ("view_user", "add_user", "change_user", "delete_user")
OF_GROUPS = ("view_group", "add_group", "change_group", "delete_group")
PASSWORD = "correct-horse-battery-9"


def superuser() -> Any:
    return client_for(make_user("root", superuser=True), "read", "manage", "admin")


def test_a_program_makes_changes_and_removes_a_user_with_a_group() -> None:
    client = superuser()
    group = post(client, GROUPS, {"name": "analysts", "permissions": ["agents.view_agent"]})
    assert group.status_code == 201, group.content
    assert group.json()["permissions"] == ["agents.view_agent"]
    made = post(
        client,
        URL,
        {
            "username": "ann",
            "password": PASSWORD,
            "email": "ann@example.org",
            "groups": ["analysts"],
        },
    )
    assert made.status_code == 201, made.content
    row, where = made.json(), made["Location"]
    assert (row["username"], row["groups"], row["enabled"]) == ("ann", ["analysts"], True)
    assert PASSWORD not in made.content.decode()
    assert "password" not in row
    assert Client().login(username="ann", password=PASSWORD)
    changed = patch(client, where, {"enabled": False, "permissions": ["agents.add_agent"]})
    assert (changed.json()["enabled"], changed.json()["permissions"]) == (
        False,
        ["agents.add_agent"],
    )
    assert client.get(f"{URL}?group=analysts").json()["results"] == [changed.json()]
    assert client.get(f"{URL}?enabled=true&q=ann").json()["results"] == []
    assert client.delete(where).status_code == 204
    assert client.delete(group["Location"]).status_code == 204
    assert not User.objects.filter(username="ann").exists()
    assert not Group.objects.exists()
    done = AuditEntry.objects.filter(door="api").order_by("id").values_list("action", flat=True)
    assert [each for each in done if each.startswith(("user", "group"))] == [
        "group.created",
        "user.created",
        "user.changed",
        "user.changed",
        "user.deleted",
        "group.deleted",
    ]


def test_a_password_is_set_and_never_shown() -> None:
    client, ann = superuser(), make_user("ann")
    where = f"{URL}/{ann.pk}"
    weak = patch(client, where, {"password": "12345"})
    assert weak.status_code == 400
    assert "password" in problem_of(weak)["errors"]
    changed = patch(client, where, {"password": PASSWORD})
    assert changed.status_code == 200, changed.content
    assert PASSWORD not in changed.content.decode()
    assert Client().login(username="ann", password=PASSWORD)
    assert AuditEntry.objects.filter(action="user.password_changed").count() == 1
    assert patch(client, where, {"password": None}).status_code == 200
    assert not User.objects.get(pk=ann.pk).has_usable_password()
    assert PASSWORD not in str(list(AuditEntry.objects.values()))


def test_an_ordinary_user_reaches_no_user() -> None:
    ann, bob = make_user("ann"), make_user("bob")
    client = client_for(ann, "read", "manage", "admin")
    for who in (ann, bob):
        where = f"{URL}/{who.pk}"
        assert client.get(where).status_code == 403
        assert patch(client, where, {"is_superuser": True}).status_code == 403
        assert patch(client, where, {"password": PASSWORD}).status_code == 403
        assert client.delete(where).status_code == 403
    assert client.get(URL).status_code == 403
    assert post(client, URL, {"username": "eve", "password": PASSWORD}).status_code == 403
    assert post(client, GROUPS, {"name": "eves"}).status_code == 403
    assert not User.objects.filter(is_superuser=True).exists()


def test_a_token_to_manage_agents_reaches_no_user() -> None:
    root = make_user("root", superuser=True)
    client = client_for(root, "read", "run", "approve", "manage")
    refused = post(client, URL, {"username": "eve", "password": PASSWORD, "is_superuser": True})
    assert problem_of(refused)["code"] == "insufficient_scope"
    assert patch(client, f"{URL}/{root.pk}", {"password": PASSWORD}).status_code == 403


def test_only_superusers_make_superusers() -> None:
    client = operator(*ALL)
    me = User.objects.get(username="olga")
    for where in (f"{URL}/{me.pk}", f"{URL}/{make_user('ann').pk}"):
        refused = patch(client, where, {"is_superuser": True})
        assert (refused.status_code, problem_of(refused)["code"]) == (403, "field_not_allowed")
    refused = post(client, URL, {"username": "eve", "password": PASSWORD, "is_superuser": True})
    assert refused.status_code == 403
    assert not User.objects.filter(is_superuser=True).exists()
    assert not User.objects.filter(username="eve").exists()


def test_others_cannot_take_over_a_superuser() -> None:
    root, client = make_user("root", superuser=True), operator(*ALL)
    where = f"{URL}/{root.pk}"
    assert patch(client, where, {"password": PASSWORD}).status_code == 403
    assert patch(client, where, {"email": "eve@example.org"}).status_code == 403
    assert client.delete(where).status_code == 403
    root.refresh_from_db()
    assert root.check_password("let-me-in-please")
    assert root.email == ""


def test_people_give_only_permissions_that_they_have() -> None:
    client = operator(*ALL, *OF_GROUPS, "view_agent")
    me = User.objects.get(username="olga")
    where = f"{URL}/{me.pk}"
    refused = patch(client, where, {"permissions": ["agents.configure_sandbox"]})
    assert refused.status_code == 400
    assert "agents.configure_sandbox" in problem_of(refused)["errors"]["permissions"][0]
    strong = Group.objects.create(name="strong")
    strong.permissions.add(Permission.objects.get(codename="configure_sandbox"))
    refused = patch(client, where, {"groups": ["strong"]})
    assert "groups" in problem_of(refused)["errors"]
    mine = post(client, GROUPS, {"name": "mine", "permissions": ["agents.configure_sandbox"]})
    assert mine.status_code == 400
    own = Group.objects.create(name="own")
    refused = patch(client, f"{GROUPS}/{own.pk}", {"permissions": ["agents.configure_sandbox"]})
    assert refused.status_code == 400
    # They may give their own permissions.
    made = post(client, GROUPS, {"name": "viewers", "permissions": ["agents.view_agent"]})
    assert made.status_code == 201, made.content
    ann = make_user("ann")
    assert patch(client, f"{URL}/{ann.pk}", {"groups": ["viewers"]}).status_code == 200
    assert not User.objects.get(pk=me.pk).has_perm("agents.configure_sandbox")


def test_the_admin_has_the_same_rules(client: Client) -> None:
    operator(*ALL)
    me, root = User.objects.get(username="olga"), make_user("root", superuser=True)
    client.force_login(me)
    page = client.get(f"/admin/auth/user/{me.pk}/change/")
    assert page.status_code == 200
    assert b'name="is_superuser"' not in page.content
    posted = client.post(
        f"/admin/auth/user/{root.pk}/password/",
        {"usable_password": "true", "password1": PASSWORD, "password2": PASSWORD},
    )
    assert posted.status_code == 403


def test_unknown_names_are_refused() -> None:
    client = superuser()
    for body, field in [
        ({"username": "ann", "groups": ["nobody"]}, "groups"),
        ({"username": "ann", "permissions": ["agents.fly"]}, "permissions"),
        ({"username": "a b", "password": PASSWORD}, "username"),
        ({"username": "ann", "password": "ann"}, "password"),
        ({"username": "root", "password": PASSWORD}, "username"),
        ({"password": PASSWORD}, "username"),
    ]:
        refused = post(client, URL, body)
        assert refused.status_code == 400, (body, refused.content)
        assert field in problem_of(refused)["errors"], (body, refused.content)
    assert not User.objects.filter(username="ann").exists()
