"""The admin's first page: its counts, which depend on the user's permissions."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django_q.models import OrmQ

from agents.models import ApprovalRequest, Run, RunClock
from agents.selectors.dashboard import count_runs, work_state
from agents.selectors.metrics import gauges
from agents.services.placement import queue_of
from agents.states import RunStatus
from tests.agents.admin import rows
from tests.agents.admin.pages import client_of, page_url, text_of

pytestmark = pytest.mark.django_db


def parts_of(person: Any) -> dict[str, Any]:
    response = client_of(person).get(reverse("admin:index"))
    assert response.status_code == 200
    return response.context["parts"]


def test_it_counts_runs_failures_use_and_pending_work():
    root, ada = rows.superuser(), rows.user()
    failed = rows.put(rows.run(ada), RunStatus.FAILED)
    rows.reply(failed, 1, "well")
    old = rows.put(rows.run(ada), RunStatus.COMPLETED)
    Run.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=3))
    ancient = rows.put(rows.run(ada), RunStatus.FAILED)
    Run.objects.filter(pk=ancient.pk).update(created_at=timezone.now() - timedelta(days=40))
    asked = rows.asked(rows.run(ada))
    ApprovalRequest.objects.filter(pk=asked.pk).update(
        created_at=timezone.now() - timedelta(hours=3)
    )
    OrmQ.objects.all().delete()

    parts = parts_of(root)

    assert parts["runs"]["today"] == 2
    assert parts["runs"]["in_all"] == 3
    assert {s: (a, b) for s, _, a, b in parts["runs"]["statuses"]} == {
        "failed": (1, 1),
        "completed": (0, 1),
        "waiting": (1, 1),
    }
    assert [(each["slug"], each["failed"], each["runs"]) for each in parts["failing"]] == [
        ("coder", 1, 3)
    ]
    assert parts["usage"]["all_tokens"] == "1,290"
    assert parts["waiting"]["count"] == 1
    assert dict(parts["waiting"]["ages"])["an hour to a day ago"] == 1
    assert parts["waiting"]["oldest"][0]["age"] == "3 h 0 min"
    text = text_of(client_of(root).get(reverse("admin:index")))
    assert page_url(asked) in text
    assert text.count("vel-chart") == 3


def test_a_day_is_a_day_of_its_zone(monkeypatch: pytest.MonkeyPatch):
    # Clocks went forward in the night to the 29th: it has 23 hours.
    now = datetime(2026, 3, 29, 23, 30, tzinfo=UTC)
    monkeypatch.setattr(timezone, "now", lambda: now)
    ada = rows.user()
    for begun in ("27T22:59", "27T23:00", "28T22:59", "28T23:00", "29T21:59", "29T22:00"):
        run = rows.put(rows.run(ada), RunStatus.COMPLETED)
        created = datetime.fromisoformat(f"2026-03-{begun}:00+00:00")
        Run.objects.filter(pk=run.pk).update(created_at=created)

    counts = count_runs(ada, 3, ZoneInfo("Europe/Berlin"))

    assert [(day.day, runs) for day, runs, _ in counts.by_day] == [(28, 2), (29, 2), (30, 1)]
    assert counts.today == {"completed": 1}


@pytest.mark.slow
def test_everybody_sees_only_their_part():
    ada = rows.user()
    rows.asked(rows.run(ada))
    clerk = rows.staff("clerk", "view_run")
    rows.put(rows.run(clerk), RunStatus.COMPLETED)

    assert set(parts_of(rows.staff("nobody"))) == {"days"}
    parts = parts_of(clerk)
    assert (parts["runs"]["in_all"], "work" in parts, "waiting" in parts) == (1, False, False)
    assert "work" in parts_of(rows.staff("chief", "view_run", "view_all_runs"))
    assert parts_of(rows.staff("judge", "view_approvalrequest"))["waiting"]["count"] == 0
    assert parts_of(rows.staff("head", "approve_toolcall", "view_approvalrequest"))["waiting"][
        "count"
    ]
    assert set(parts_of(rows.staff("auditor", "view_auditentry"))) == {"days", "audit"}


def test_unclaimed_and_late_work_is_counted():
    ada, now = rows.user(), timezone.now()
    OrmQ.objects.all().delete()
    run = rows.put(rows.run(ada), RunStatus.RUNNING)
    RunClock.objects.filter(run=run).update(lease_until=time.time() + 60)
    lost = rows.put(rows.run(ada), RunStatus.RUNNING)
    RunClock.objects.filter(run=lost).update(lease_until=time.time() - 60)
    OrmQ.objects.all().delete()
    key = settings.Q_CLUSTER["name"]
    OrmQ.objects.create(key=key, payload="x", lock=now + timedelta(seconds=90))
    assert (work_state().tasks, work_state().is_late) == (0, False)
    OrmQ.objects.create(key=key, payload="x", lock=now - timedelta(seconds=90))
    OrmQ.objects.create(key="another", payload="x", lock=now - timedelta(days=1))

    state = work_state()

    assert (state.tasks, state.driven, state.lost, state.is_late) == (1, 1, 1, True)
    assert 90 <= (state.oldest_seconds or 0) < 120
    gauges_by_name = {gauge.name: gauge.values for gauge in gauges()}
    assert gauges_by_name["vel_queue_tasks"] == {(): 1}
    assert 90 <= gauges_by_name["vel_queue_oldest_seconds"][()] < 120
    text = text_of(client_of(rows.superuser()).get(reverse("admin:index")))
    assert "no worker has taken it" in text


def test_tasks_of_single_hosts_are_counted_with_those_of_the_common_queue():
    OrmQ.objects.all().delete()
    long_ago = timezone.now() - timedelta(seconds=90)
    OrmQ.objects.create(key=queue_of("vel-2"), payload="x", lock=long_ago)
    assert (work_state().tasks, work_state().is_late) == (1, True)
    assert next(each for each in gauges() if each.name == "vel_queue_tasks").values == {(): 1}


def test_output_of_agents_is_text_and_queries_do_not_grow_with_rows():
    root, ada = rows.superuser(), rows.user()
    rows.asked(rows.run(ada), tool="<script>\u202e")
    client = client_of(root)

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as seen:
            text = text_of(client.get(reverse("admin:index")))
        assert "&lt;script&gt;⟨U+202E⟩" in text
        return len(seen)

    first = queries()
    for _ in range(4):
        rows.asked(rows.run(ada))
    assert queries() == first


def test_visitors_who_are_not_signed_in_get_the_login_page():
    response = Client().get(reverse("admin:login"))

    assert response.status_code == 200
    assert "vel-dashboard" not in text_of(response)
