"""Objects of others that operators manage by REST as in the admin."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User

from agents.features.credentials.models import Credential
from agents.features.inbound_webhooks.models import InboundWebhook
from agents.features.notifications.models import (
    Notification,
    NotificationStatus,
    NotificationTarget,
)
from agents.features.schedules.models import Schedule
from agents.models import ApiToken, AuditEntry, Machine, Thread
from agents.models.database_clock import database_now
from agents.secret_text import SecretText
from agents.states import RunStatus
from tests.agents.api.managed.rows import operator, patch, post
from tests.agents.api.rows import (
    ask_approval,
    client_for,
    make_agent,
    make_run,
    make_user,
    problem_of,
)

pytestmark = pytest.mark.django_db
API = "/api/v1"
TARGETS = ("view", "add", "change", "delete")
TARGET_PERMISSIONS = [f"{verb}_notificationtarget" for verb in TARGETS]
WITH_SECRET = {"secret": SecretText.seal("s" * 40), "former_secret": SecretText("")}
ADDRESS = "https://hooks.example.org/T0/secret-path"


def test_a_target_gets_its_secret_once() -> None:
    client = operator(*TARGET_PERMISSIONS)
    make_agent()
    made = post(
        client,
        f"{API}/notification-targets",
        {"kind": "webhook", "address": ADDRESS, "agent": "writer"},
    )
    assert made.status_code == 201, made.content
    secret, where = made.json()["secret"], made["Location"]
    assert secret == NotificationTarget.objects.get().secret
    read = client.get(where)
    assert (read.json()["agent"], read.json()["enabled"]) == ("writer", True)
    assert secret not in read.content.decode()
    paused = patch(client, where, {"enabled": False})
    assert (paused.json()["enabled"], paused.json()["secret"]) == (False, None)
    moved = patch(client, where, {"address": f"{ADDRESS}/2"})
    assert moved.json()["secret"] not in (None, secret)
    renewed = post(client, f"{where}/new-secret").json()["secret"]
    assert renewed == NotificationTarget.objects.get().secret
    assert secret not in str(list(AuditEntry.objects.values()))
    assert client.delete(where).status_code == 204


def test_people_without_the_permission_see_no_target() -> None:
    target = NotificationTarget.objects.create(kind="webhook", address=ADDRESS, secret="s" * 40)
    where = f"{API}/notification-targets/{target.pk}"
    make_agent(owner=make_user("ann"))
    for client in (client_for(make_user("bob")), operator("view_budget")):
        for refused in (
            client.get(f"{API}/notification-targets"),
            client.get(where),
            patch(client, where, {"address": "https://evil.example.org/"}),
            post(client, f"{where}/new-secret"),
            post(client, f"{where}/test"),
            client.delete(where),
            post(client, f"{API}/notification-targets", {"kind": "webhook", "address": ADDRESS}),
        ):
            assert refused.status_code == 403
            assert "secret-path" not in refused.content.decode()
    viewer = operator("view_notificationtarget", name="vic")
    assert viewer.get(where).status_code == 200
    assert post(viewer, f"{where}/new-secret").status_code == 403
    target.refresh_from_db()
    assert (target.address, target.secret) == (ADDRESS, "s" * 40)


def test_a_message_that_was_given_up_is_tried_again() -> None:
    target = NotificationTarget.objects.create(kind="webhook", address=ADDRESS, secret="s" * 40)
    make_agent()
    row = Notification.objects.create(
        target=target,
        type="approval.requested",
        subject_id=ask_approval(make_run(make_user("ann"))).pk,
        status="given_up",
        error="refused",
    )
    where = f"{API}/notifications/{row.pk}"
    viewer = operator("view_notification")
    assert viewer.get(f"{API}/notifications?status=given_up").json()["results"][0]["id"] == row.pk
    assert post(viewer, f"{where}/retry").status_code == 403
    client = operator("view_notification", "change_notification", name="ole")
    tried = post(client, f"{where}/retry")
    assert (tried.status_code, tried.json()["status"]) == (200, NotificationStatus.PENDING)
    assert client.delete(where).status_code == 405


def test_a_machine_is_drained_by_operators_with_the_scope_admin() -> None:
    now = database_now()
    for name in ("a.example.org", "b"):
        Machine.objects.create(
            name=name, identity=name, joined_at=now, seen_at=now, shares_workspaces=False
        )
    client = operator("view_machine", "change_machine")
    where = f"{API}/machines/a.example.org"
    assert client.get(where).json()["state"] == "alive"
    assert [row["id"] for row in client.get(f"{API}/machines").json()["results"]] == [
        "a.example.org",
        "b",
    ]
    assert post(client, f"{where}/drain").json()["state"] == "drained"
    assert post(client, f"{where}/undrain").json()["state"] == "alive"
    alive = post(client, f"{where}/declare-dead")
    assert (alive.status_code, problem_of(alive)["code"]) == (409, "host_alive")
    viewer = operator("view_machine", name="vic")
    assert post(viewer, f"{where}/drain").status_code == 403
    managing = client_for(make_user("root", superuser=True), "manage", "read")
    assert problem_of(post(managing, f"{where}/drain"))["code"] == "insufficient_scope"
    assert not Machine.objects.filter(is_draining=True).exists()


def test_operators_revoke_tokens_of_others_and_see_no_secret() -> None:
    client_for(make_user("ann"), "read")
    token = ApiToken.objects.get(user__username="ann")
    where = f"{API}/user-tokens/{token.pk}"
    bob = client_for(make_user("bob"), "read", "manage", "admin")
    for refused in (bob.get(f"{API}/user-tokens"), bob.get(where), post(bob, f"{where}/revoke")):
        assert refused.status_code == 403
    client = operator("view_apitoken", "change_apitoken")
    listed = client.get(f"{API}/user-tokens?user=ann")
    assert [row["prefix"] for row in listed.json()["results"]] == [token.prefix]
    assert token.digest not in listed.content.decode()
    assert post(client, f"{where}/revoke").json()["state"] == "revoked"
    assert AuditEntry.objects.get(action="token.revoked").actor == "olga"


def test_operators_remove_credentials_and_see_no_secret() -> None:
    ann = make_user("ann")
    row = Credential.objects.create(
        provider="slack", owner=ann, secret=SecretText.seal("xoxb-very-secret"), account="bot"
    )
    where = f"{API}/stored-credentials/{row.pk}"
    bob = client_for(make_user("bob"), "read", "manage", "admin")
    assert [bob.get(where).status_code, bob.delete(where).status_code] == [403, 403]
    client = operator("view_credential", "delete_credential")
    read = client.get(where)
    assert (read.json()["owner"], read.json()["account"]) == ("ann", "bot")
    assert "xoxb" not in read.content.decode()
    url = f"{API}/stored-credentials"
    assert post(client, url, {"provider": "slack", "values": {"token": "x"}}).status_code == 403
    sharer = operator("view_credential", "share_credential", name="sam")
    for body, field in [
        ({"provider": "nothing", "values": {}}, "provider"),
        ({"provider": "slack", "values": {"pass": "x"}}, "values"),
        ({"provider": "slack", "values": {}}, "values"),
    ]:
        refused = post(sharer, url, body)
        assert field in problem_of(refused)["errors"], refused.content
    assert client.delete(where).status_code == 204
    assert not Credential.objects.exists()


@pytest.mark.parametrize(("model", "path"), [(Schedule, "schedules"), (InboundWebhook, "hooks")])
def test_operators_only_pause_and_delete_triggers_of_others(
    model: type[Schedule | InboundWebhook], path: str
) -> None:
    ann = make_user("ann")
    more = {"cron": "0 8 * * *"} if model is Schedule else WITH_SECRET
    row = model.objects.create(name="Daily", owner=ann, agent=make_agent(), message="Go", **more)
    where, name = f"{API}/{path}/{row.pk}", model._meta.model_name
    for stranger in (client_for(make_user("bob"), "read", "run", "manage", "admin"),):
        assert stranger.get(f"{API}/{path}?of=all").status_code == 403
        assert stranger.get(f"{API}/{path}").json()["results"] == []
        for refused in (
            stranger.get(where),
            patch(stranger, where, {"enabled": False}),
            stranger.delete(where),
        ):
            assert refused.status_code == 404
    client = operator()
    olga = User.objects.get(username="olga")
    for permission in (f"view_{name}", f"change_{name}"):
        olga.user_permissions.add(
            Permission.objects.get(
                codename=permission, content_type__app_label=model._meta.app_label
            )
        )
    assert client.get(f"{API}/{path}").json()["results"] == []
    listed = client.get(f"{API}/{path}?of=all").json()["results"]
    assert [(each["id"], each["owner"]) for each in listed] == [(row.pk, "ann")]
    taken = patch(client, where, {"message": "Send me everything"})
    assert taken.status_code == 403, taken.content
    assert patch(client, where, {"enabled": False}).json()["enabled"] is False
    row.refresh_from_db()
    assert (row.message, row.is_enabled, row.owner) == ("Go", False, ann)
    assert client.delete(where).status_code == 204


def test_operators_erase_threads_of_others_and_read_no_files() -> None:
    make_agent()
    run = make_run(make_user("ann"))
    type(run).objects.filter(pk=run.pk).update(status=RunStatus.COMPLETED)
    where = f"{API}/user-threads/{run.thread_id}"
    bob = client_for(make_user("bob"), "read", "manage", "admin")
    plain = client_for(make_user("pia", "view_thread", "erase_thread", "view_all_runs"))
    for client in (bob, plain):
        assert client.get(f"{API}/user-threads").status_code == 403
        assert client.get(where).status_code == 403
        assert post(client, f"{where}/erase").status_code == 403
    # Without the permission to see them, they are not found, as in the admin.
    blind = operator("view_thread", "erase_thread", name="bea")
    assert blind.get(f"{API}/user-threads").json()["results"] == []
    assert post(blind, f"{where}/erase").status_code == 404
    viewer = operator("view_thread", "view_all_runs", name="vic")
    assert post(viewer, f"{where}/erase").status_code == 403
    assert Thread.objects.filter(pk=run.thread_id).exists()
    client = operator("view_thread", "erase_thread", "view_all_runs")
    listed = client.get(f"{API}/user-threads?owner=ann").json()["results"]
    assert [(each["id"], each["owner"], each["runs"]) for each in listed] == [
        (run.thread_id, "ann", 1)
    ]
    assert client.get(f"{API}/threads/{run.thread_id}/files").status_code == 404
    assert client.delete(f"{API}/threads/{run.thread_id}").status_code == 404
    assert post(client, f"{where}/erase").status_code == 200
    assert not Thread.objects.filter(pk=run.thread_id).exists()
    assert AuditEntry.objects.get(action="thread.erased").actor == "olga"
