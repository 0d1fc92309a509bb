"""The operator console: its numbers, its lists, and who may see them."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.events.append import dump
from agents.ids import first_id_at
from agents.models import (
    ApprovalRequest,
    Effect,
    Message,
    MessageRole,
    Run,
    RunClock,
    RunEvent,
    ToolCall,
)
from agents.services.runs.usage_totals import count_ended_runs
from tests.agents.api.rows import (
    ask_approval,
    client_for,
    make_agent,
    make_run,
    make_user,
    problem_of,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def olga() -> User:
    make_agent(sandbox=False)
    make_agent("second", sandbox=False)
    return make_user("olga", "view_all_runs")


@pytest.fixture
def ann(olga: User) -> User:
    return make_user("ann")


def reply(run: Run, turn: int = 1, cost: int | None = 1_000_000, model: str = "m") -> None:
    Message.objects.create(
        run=run,
        turn=turn,
        role=MessageRole.ASSISTANT,
        content="[]",
        model=model,
        input_tokens=10,
        output_tokens=5,
        cost_microusd=cost,
    )


def call(run: Run, tool: str, position: int, *, is_error: bool = False) -> None:
    now = timezone.now()
    ToolCall.objects.create(
        run=run,
        turn=1,
        position=position,
        call_id=f"call-{position}",
        tool=tool,
        input=dump({}),
        effect=Effect.READ,
        status="failed" if is_error else "succeeded",
        is_error=is_error,
        started_at=now - timedelta(seconds=4),
        finished_at=now,
    )


def end(run: Run, status: str = "completed", **fields: Any) -> None:
    Run.objects.filter(pk=run.pk).update(status=status, ended_at=timezone.now(), **fields)


def console(user: User, **query: str | float) -> dict[str, Any]:
    response = client_for(user).get("/api/v1/console", query)
    assert response.status_code == 200, response.content
    found: dict[str, Any] = response.json()
    return found


def page(user: User, query: str = "") -> Any:
    browser = Client()
    browser.force_login(user)
    return browser.get(f"/console/{query}")


def group(found: dict[str, Any], name: str) -> dict[str, Any]:
    (row,) = (row for row in found["groups"] if row["name"] == name)
    return dict(row)


def test_users_without_the_permission_get_403_and_no_name_and_no_link(ann: User) -> None:
    eve = make_user("eve", "approve_toolcall", "view_run")
    end(make_run(ann), "failed", error_code="secret_code")
    answer = page(eve)
    assert answer.status_code == 403
    refused = client_for(eve).get("/api/v1/console")
    assert problem_of(refused)["status"] == 403
    for text in (answer.content.decode(), refused.content.decode()):
        assert not [word for word in ("ann", "writer", "secret_code") if word in text]
    browser = Client()
    browser.force_login(eve)
    assert "/console/" not in browser.get("/usage/").content.decode()
    browser.force_login(User.objects.get(username="olga"))
    assert 'href="/console/"' in browser.get("/usage/").content.decode()


def test_the_permission_without_the_scope_gets_403(olga: User) -> None:
    assert client_for(olga, "run").get("/api/v1/console").status_code == 403


def test_nobody_sees_the_console_without_signing_in(olga: User) -> None:
    assert Client().get("/console/").status_code == 302
    assert Client().get("/api/v1/console").status_code == 401


def test_cost_and_runs_are_grouped_by_agent_user_and_model(olga: User, ann: User) -> None:
    first, second = make_run(ann), make_run(olga, agent="second")
    reply(first, cost=2_000_000)
    reply(second, cost=None, model="other")
    end(first)
    assert count_ended_runs() == 1
    end(second, "failed", error_code="model_error")
    found = console(olga)
    writer = group(found, "writer")
    assert (writer["cost"], writer["cost_complete"]) == ("2.00", True)
    assert (writer["runs"], writer["failed_runs"], writer["tokens"]) == (1, 0, 15)
    assert (group(found, "second")["failed_runs"], found["total"]["runs"]) == (1, 2)
    assert found["total"]["cost_complete"] is False
    found = console(olga, by="user")
    assert [row["name"] for row in found["groups"]] == ["ann", "olga"]
    assert group(found, "olga")["runs"] == 1
    found = console(olga, by="model")
    assert group(found, "m")["cost"] == "2.00"
    assert group(found, "demo")["runs"] == 2
    assert [row["name"] for row in found["top_users"]] == ["ann", "olga"]
    assert [row["name"] for row in found["top_agents"]] == ["writer", "second"]


def test_only_people_who_may_add_budgets_get_links_to_their_form(olga: User, ann: User) -> None:
    reply(make_run(ann))
    assert "Set a budget" not in page(olga).content.decode()
    staff = make_user("oscar", "view_all_runs", "add_budget")
    assert "Set a budget" not in page(staff).content.decode(), "no access to the admin"
    staff.is_staff = True
    staff.save()
    html = page(staff).content.decode()
    assert "/admin/vel_budgets/budget/add/?agent_slug=writer" in html
    assert "/admin/vel_budgets/budget/add/?user_name=ann" in html


def test_tool_calls_are_grouped_by_tool(olga: User, ann: User) -> None:
    run = make_run(ann)
    reply(run)
    for position in range(3):
        call(run, "grep", position, is_error=position == 0)
    call(run, "ls", 3)
    found = console(olga, by="tool")
    grep = group(found, "grep")
    assert (grep["tool_calls"], grep["failed_tool_calls"], grep["tool_seconds"]) == (3, 1, 12)
    assert group(found, "")["cost"] == "1.00"
    assert group(console(olga), "writer")["tool_calls"] == 4


def test_runs_before_the_period_and_copies_are_not_counted(olga: User, ann: User) -> None:
    old, copy, early = make_run(ann), make_run(ann), make_run(ann)
    past = timezone.now() - timedelta(days=20)
    Run.objects.filter(pk=old.pk).update(created_at=past)
    Run.objects.filter(pk=copy.pk).update(is_copy=True)
    # As it is stored: the id has the time of the run.
    key = first_id_at(past)[:-1] + "1"
    Run.every.create(
        pk=key,
        thread=early.thread,
        number=9,
        agent_version=early.agent_version,
        owner=ann,
        status="completed",
    )
    Run.every.filter(pk=key).update(created_at=past)
    assert console(olga, days=7)["total"]["runs"] == 1
    assert console(olga, days=30)["total"]["runs"] == 3


def test_the_wait_for_a_decision_and_for_a_worker_is_a_mean(olga: User, ann: User) -> None:
    run = make_run(ann)
    now = timezone.now()
    Run.objects.filter(pk=run.pk).update(started_at=run.created_at + timedelta(seconds=8))
    RunClock.objects.filter(run=run).update(active_ms=5_500)
    for seconds in (10, 30):
        request = ask_approval(run)
        ApprovalRequest.objects.filter(pk=request.pk).update(
            status="decided", created_at=now, decided_at=now + timedelta(seconds=seconds)
        )
    total = console(olga)["total"]
    assert (total["mean_approval_seconds"], total["decided_requests"]) == (20, 2)
    assert (total["mean_queue_seconds"], total["worker_seconds"]) == (8, 5.5)
    assert console(olga, by="tool")["total"] == total
    assert group(console(olga, by="tool"), "execute")["mean_approval_seconds"] == 20
    assert '<td class="number">2</td><td class="number">20 s</td>' in page(olga).content.decode()


def test_private_requests_of_other_people_are_neither_listed_nor_counted(
    olga: User, ann: User
) -> None:
    shown, hidden, decided, own = (ask_approval(make_run(owner)) for owner in (ann, ann, ann, olga))
    private = ApprovalRequest.objects.exclude(pk=shown.pk)
    private.update(is_private=True, tool="private_tool")
    ApprovalRequest.objects.filter(pk=decided.pk).update(
        status="decided", decided_at=timezone.now()
    )
    found = console(olga)
    assert [row["id"] for row in found["waiting_requests"]] == [shown.pk, own.pk]
    assert found["total"]["decided_requests"] == 0
    root = make_user("root", superuser=True)
    assert hidden.pk not in {row["id"] for row in console(root)["waiting_requests"]}
    assert "private_tool" not in page(root).content.decode()


def test_failed_runs_are_grouped_by_code_with_the_newest(olga: User, ann: User) -> None:
    runs = [make_run(ann) for _ in range(3)]
    for run, code in zip(runs, ("timeout", "timeout", "no_key"), strict=True):
        end(run, "failed", error_code=code, error_message=f"<b>{code}</b>\u202e")
    end(make_run(ann), error_code="timeout")  # it has not failed
    found = console(olga)["failures"]
    assert [(row["error_code"], row["runs"], row["newest"]["run"]) for row in found] == [
        ("timeout", 2, runs[1].pk),
        ("no_key", 1, runs[2].pk),
    ]
    text = page(olga).content.decode()
    assert f'href="/runs/{runs[1].pk}/"' in text
    assert "&lt;b&gt;timeout&lt;/b&gt;⟨U+202E⟩" in text
    assert "<b>" not in text


def test_stuck_runs_have_a_cause(olga: User, ann: User) -> None:
    lost, died, untaken, overdue, quiet, fine = (make_run(ann) for _ in range(6))
    now, clock = timezone.now(), time.time()
    long_ago = now - timedelta(hours=1)

    def put(run: Run, status: str, lease: float | None = None, **fields: object) -> None:
        Run.objects.filter(pk=run.pk).update(status=status, **fields)
        RunClock.objects.filter(run=run).update(lease_until=lease)

    put(lost, "running", clock - 60)
    put(died, "queued")
    RunClock.objects.filter(run=died).update(lost_drivers=2)
    RunEvent.objects.filter(run=untaken).update(created_at=long_ago)
    put(untaken, "queued", created_at=long_ago)
    put(overdue, "waiting", wake_at=clock - 600)
    RunEvent.objects.filter(run=quiet).update(created_at=long_ago)
    put(quiet, "running", clock + 60, created_at=long_ago)
    put(fine, "running", clock + 60)
    assert {row["run"]: row["cause"] for row in console(olga)["stuck_runs"]} == {
        lost.pk: "driver_lost",
        died.pk: "driver_died",
        untaken.pk: "not_taken",
        overdue.pk: "overdue",
        quiet.pk: "quiet",
    }
    assert console(olga)["waiting_runs"][0]["run"] == untaken.pk
    text = page(olga).content.decode()
    assert "No worker has taken it from the queue" in text


def test_the_number_of_queries_does_not_grow_with_rows(olga: User, ann: User) -> None:
    browser = Client()
    browser.force_login(olga)

    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            assert browser.get("/console/?days=90").status_code == 200
        return len(found)

    def fill() -> None:
        for code in ("a", "b", "c"):
            run = make_run(ann)
            reply(run)
            call(run, f"tool_{code}", 7)
            ask_approval(make_run(ann))
            end(run, "failed", error_code=code)
            make_run(ann)

    fill()
    before = queries()
    fill()
    assert queries() == before
    assert before <= 22


def test_the_page_has_charts_with_their_numbers_as_tables_and_no_inline_style(
    olga: User, ann: User
) -> None:
    for name in ("<svg onload=alert(1)>", "two", "three", "four", "five", "six", "seven"):
        user = User.objects.create_user(name)
        reply(make_run(user), cost=3_000_000 if name.startswith("<") else 1_000_000)
    answer = page(olga, "?by=user&days=7")
    text = answer.content.decode()
    assert text.count('class="console-chart"') == text.count("<summary>Numbers")
    assert "&lt;svg onload=alert(1)&gt;: $3.00</title>" in text
    assert "<svg onload" not in text
    assert "style=" not in text
    (cost, *_) = answer.context["charts"]
    assert cost.heads[0] == "<svg onload=alert(1)>"
    assert (cost.heads[-1], len(cost.heads), len(cost.rows)) == ("others", 6, 7)
    assert cost.rows[0][1][-1] == "$2.00"
    last_row = text.partition("<tfoot>")[2].partition("</tfoot>")[0]
    assert re.findall(r">([^<]+)</t[dh]>", last_row)[:4] == ["Total", "$9.0000", "105", "7"]


@pytest.mark.parametrize("query", ["?days=8000000&by=x", "?days=%00&by=%00", "?by=tool&days=90"])
def test_unknown_filters_show_the_default(olga: User, query: str) -> None:
    assert page(olga, query).status_code == 200


@pytest.mark.parametrize("query", ["days=8", "by=password", "x=1"])
def test_rest_refuses_other_periods_and_groups(olga: User, query: str) -> None:
    answer = client_for(olga).get(f"/api/v1/console?{query}")
    assert answer.status_code == 400
