"""Who may erase what: `DELETE /threads/{id}`, the confirmation page, and the admin's action."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agents.models import AuditEntry, Run, Thread
from agents.services.erasure.actions import finish_erasures
from agents.states import RunStatus
from tests.agents.api.rows import (
    answer_run,
    client_for,
    make_agent,
    make_run,
    make_user,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    make_agent(sandbox=False)
    return make_user("ann")


def ended(owner: User) -> Run:
    run = make_run(owner, message="My secret plan")
    answer_run(run, "Done.")
    return run


def erase(user: User, thread: str, *scopes: str) -> int:
    client = client_for(user, *scopes)
    return int(client.delete(f"/api/v1/threads/{thread}").status_code)


def page_for(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.slow
@pytest.mark.both_databases
def test_an_owner_erases_a_thread(ann: User) -> None:
    run = ended(ann)
    assert erase(ann, run.thread_id) == 204
    client = client_for(ann)
    for path in (f"threads/{run.thread_id}", f"runs/{run.pk}", f"runs/{run.pk}/events"):
        assert client.get(f"/api/v1/{path}").status_code == 404
    assert client.get("/api/v1/threads").json()["results"] == []
    assert client.get("/api/v1/runs").json()["results"] == []
    assert page_for(ann).get(reverse("web:run", args=[run.pk])).status_code == 404
    assert b"secret plan" not in page_for(ann).get(reverse("web:history")).content
    assert erase(ann, run.thread_id) == 404
    finish_erasures()
    assert not Thread.every.exists()


def test_only_its_owner_erases_a_thread(ann: User) -> None:
    run = ended(ann)
    boss = make_user("boss", superuser=True)
    for other in (make_user("bob"), make_user("eve", "view_all_runs"), boss):
        assert erase(other, run.thread_id) == 404
        url = reverse("web:run-erase", args=[run.pk])
        assert page_for(other).post(url).status_code == 404
    assert Thread.objects.filter(pk=run.thread_id).exists()


@pytest.mark.parametrize("scope", ["read", "run", "approve"])
def test_a_narrow_token_cannot_erase_its_own_traces(ann: User, scope: str) -> None:
    run = ended(ann)
    assert erase(ann, run.thread_id, scope) == 403
    assert erase(ann, run.thread_id, "manage") == 204


@pytest.mark.both_databases
def test_a_thread_at_work_is_a_conflict(ann: User) -> None:
    run = make_run(ann)
    assert erase(ann, run.thread_id) == 409
    assert page_for(ann).post(reverse("web:run-erase", args=[run.pk])).status_code == 302
    assert Thread.objects.filter(pk=run.thread_id).exists()


def test_the_page_asks_first(ann: User) -> None:
    run = ended(ann)
    client = page_for(ann)
    url = reverse("web:run-erase", args=[run.pk])
    assert url.encode() in client.get(reverse("web:run", args=[run.pk])).content
    asked = client.get(url)
    assert asked.status_code == 200
    assert b"You cannot undo this" in asked.content
    assert Thread.objects.filter(pk=run.thread_id).exists()
    assert Client().post(url).status_code == 302  # redirected to the sign-in page
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ann)
    assert strict.post(url).status_code == 403
    assert Thread.objects.filter(pk=run.thread_id).exists()
    assert client.post(url).headers["Location"] == reverse("web:history")
    assert not Thread.objects.filter(pk=run.thread_id).exists()


def test_the_admins_action_needs_its_permission_and_asks_first(ann: User) -> None:
    run = ended(ann)
    Run.objects.update(status=RunStatus.COMPLETED)
    url = reverse("admin:agents_thread_changelist")
    chosen = {"action": "erase_selected", "_selected_action": [run.thread_id]}
    confirmed = {**chosen, "confirmed": "erase_selected"}
    reader = make_user("reader", "view_thread", "view_all_runs")
    eraser = make_user("eraser", "view_thread", "view_all_runs", "erase_thread")
    User.objects.filter(username__in=["reader", "eraser"]).update(is_staff=True)
    reader.refresh_from_db()
    eraser.refresh_from_db()
    page_for(reader).post(url, confirmed)
    assert b"Erase 1 thread" in page_for(eraser).post(url, chosen).content
    assert Thread.objects.filter(pk=run.thread_id).exists()
    page_for(eraser).post(url, confirmed)
    assert not Thread.objects.filter(pk=run.thread_id).exists()
    entry = AuditEntry.objects.get(action="thread.erased")
    assert (entry.actor, entry.door) == ("eraser", "admin")
    assert "secret" not in str(entry.__dict__)
