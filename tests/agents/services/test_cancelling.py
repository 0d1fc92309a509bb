"""Permissions to cancel a run, the same at every door."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client
from django.urls import reverse

from agents.services.errors import NotAllowed
from agents.services.runs.control import cancel_for, may_cancel
from agents.states import RunStatus
from tests.agents.admin import rows

pytestmark = pytest.mark.django_db


def test_only_owners_and_superusers_may_cancel() -> None:
    owner, other, root = rows.user(), rows.user("bob"), rows.superuser()
    run = rows.run(owner)
    watcher = rows.staff("watcher", "view_all_runs", "approve_toolcall", "change_run")
    for person, may in [(owner, True), (root, True), (other, False), (watcher, False)]:
        assert may_cancel(person, run) is may
    assert not may_cancel(AnonymousUser(), run)
    with pytest.raises(NotAllowed):
        cancel_for(other, run)
    with pytest.raises(NotAllowed):
        cancel_for(watcher, run)
    run.refresh_from_db()
    assert run.status == RunStatus.QUEUED
    assert cancel_for(owner, run).status == RunStatus.CANCELLED


def test_the_operators_door_needs_the_permission() -> None:
    run = rows.run(rows.user())
    with pytest.raises(NotAllowed):
        cancel_for(rows.staff("reader", "view_run"), run, operate=True)
    operator = rows.staff("operator", "change_run")
    assert cancel_for(operator, run, operate=True).status == RunStatus.CANCELLED


def test_the_permission_to_operate_opens_no_other_door() -> None:
    run = rows.run(rows.user())
    operator = rows.staff("operator", "change_run", "view_all_runs")
    client = Client()
    client.force_login(operator)
    client.post(reverse("web:run-cancel", args=[run.pk]))
    api = client.post(reverse("api:run-cancel", args=[run.pk]), content_type="application/json")
    assert (api.status_code, "Only its owner" in api.content.decode()) == (403, True)
    run.refresh_from_db()
    assert run.status == RunStatus.QUEUED
