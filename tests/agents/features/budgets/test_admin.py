"""Budgets in the admin: permissions, pages, and higher limits."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from agents.features.budgets import admin as budgets
from agents.features.budgets.actions import delete_budget, save_budget
from agents.features.budgets.models import Allowance, Budget
from agents.models import Agent, ApprovalRequest, AuditEntry, Message
from agents.services.errors import NotFound
from tests.agents.admin.pages import client_of, list_url, page_url, text_of
from tests.agents.engine.by_hand import claimed, committed
from tests.agents.features.budgets.test_locking import ask
from tests.support.runs import make_agent, make_user, start_run

pytestmark = pytest.mark.django_db(transaction=True)

ADD = "admin:vel_budgets_budget_add"


def staff(*permissions: str, name: str = "oscar") -> User:
    user = make_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return user


def form(of: User, **typed: Any) -> dict[str, Any]:
    fields = {"user": of.pk, "agent": "", "period": "day", "max_tokens": "1000", "max_cost": ""}
    return fields | typed


def asked(user: User) -> ApprovalRequest:
    """Create a run of the user's that waits because a window is used up."""
    save_budget(Budget(user=user, period="day", max_tokens=100))
    Allowance.objects.update(used_tokens=100)
    run = start_run(user)
    assert committed(ask, claimed(run))
    return ApprovalRequest.objects.get(run=run)


def test_names_of_an_agent_and_a_user_fill_in_a_new_budget() -> None:
    ada = make_user()
    agent = make_agent(ada)
    client = client_of(staff("add_budget", "view_agent", "view_user"))
    named = {"agent_slug": agent.slug, "user_name": ada.get_username(), "period": "day"}
    form = client.get(reverse(ADD), named).context["adminform"].form
    found = (form["agent"].value(), form["user"].value(), form["period"].value())
    assert found == (agent.pk, ada.pk, "day")
    unknown = {"agent_slug": "nobody\0", "user_name": "\0"}
    form = client.get(reverse(ADD), unknown).context["adminform"].form
    assert (form["agent"].value(), form["user"].value()) == (None, None)


def test_budgets_are_for_people_with_their_permission() -> None:
    ada = make_user()
    nobody = client_of(staff(name="nina"))
    assert nobody.get(list_url(Budget)).status_code == 403
    assert nobody.get(reverse(ADD)).status_code == 403
    assert nobody.post(reverse(ADD), form(ada)).status_code == 403
    assert nobody.get(reverse("admin:vel_budgets_budget_usage")).status_code == 403
    assert not Budget.objects.exists()


def test_a_budget_is_made_and_its_limits_are_changed() -> None:
    ada = make_user()
    client = client_of(staff("add_budget", "change_budget", "view_budget"))
    wrong = client.post(reverse(ADD), form(ada, max_tokens=""))
    assert "Set a limit" in text_of(wrong)
    wrong = client.post(reverse(ADD), form(ada, user=""))
    assert "Choose the agent, the user, or both" in text_of(wrong)
    assert client.post(reverse(ADD), form(ada)).status_code == 302
    budget = Budget.objects.get()
    assert budget.windows.get().max_tokens == 1_000
    other = make_user("eve")
    answer = client.post(page_url(budget), form(other, period="month", max_tokens="2000"))
    assert answer.status_code == 302
    budget.refresh_from_db()
    # The user and the period do not change.
    assert (budget.user, budget.period, budget.max_tokens) == (ada, "day", 2_000)
    assert budget.windows.get().max_tokens == 2_000


def test_a_budget_removed_meanwhile_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    ada = make_user()
    client = client_of(staff("add_budget", "change_budget", "view_budget"))
    client.post(reverse(ADD), form(ada))
    budget = Budget.objects.get()
    saves = budgets.save_budget

    def removed_meanwhile(row: Budget) -> Budget:
        delete_budget(row)
        return saves(row)

    monkeypatch.setattr(budgets, "save_budget", removed_meanwhile)
    answer = client.post(page_url(budget), form(ada, max_tokens="2000"), follow=True)
    assert "This budget has been deleted" in text_of(answer)
    assert Budget.objects.filter(max_tokens=1_000).exists()  # the whole change was rolled back

    delete_budget(budget)
    delete_budget(budget)
    assert AuditEntry.objects.filter(action="budget.removed").count() == 1
    with pytest.raises(NotFound):
        saves(budget)


def test_a_budget_shows_its_windows_without_script_or_style() -> None:
    user = make_user()
    make_agent(user)
    request = asked(user)
    Message.objects.create(
        run=request.run,
        turn=1,
        role="assistant",
        content="[]",
        model="m<b>",
        input_tokens=1_234,
        output_tokens=1,
        cost_microusd=2_500_000,
    )
    client = client_of(staff("change_budget", "view_budget", "view_all_runs"))
    usage = reverse("admin:vel_budgets_budget_usage")
    pages = [list_url(Budget), page_url(Budget.objects.get()), usage]
    texts = [text_of(client.get(url)) for url in pages]
    assert "100 of 100" in texts[0]
    assert "<rect" in texts[1]
    assert re.search(r"<rect[^>]*><title>[-\d]+: 100</title>", texts[1])
    assert "1235" in texts[2]
    assert texts[2].count("<rect") == 2 * 30, "a day without use is a day"
    assert "Highest: 1,235." in texts[2]
    assert "$2.50" in texts[2]
    assert "m&lt;b&gt;" in texts[2]
    for text in texts:
        for chart in re.findall(r'<svg class="vel-chart".*?</svg>', text, re.S):
            assert not re.search("style|onload|script", chart)


def test_usage_is_of_runs_that_one_may_see() -> None:
    user = make_user()
    make_agent(user)
    run = start_run(user)
    Message.objects.create(run=run, turn=1, role="assistant", content="[]", model="secret-model")
    client = client_of(staff("view_budget"))
    assert "secret-model" not in text_of(client.get(reverse("admin:vel_budgets_budget_usage")))


def test_permitted_people_raise_a_budget_in_the_admin() -> None:
    user = make_user()
    make_agent(user)
    request = asked(user)
    data = {"decision": "edit", "digest": request.digest, "input": '{"more_tokens": 5000}'}
    approver = client_of(staff("approve_toolcall", name="amy"))
    page = text_of(approver.get(page_url(request)))
    assert "permission to change budgets" in page
    approver.post(page_url(request), data)
    request.refresh_from_db()
    assert request.status == "pending"
    boss = client_of(staff("change_budget"))
    page = text_of(boss.get(page_url(request)))
    assert "Give more tokens" in page
    assert "100 tokens" in page
    boss.post(page_url(request), data)
    request.refresh_from_db()
    assert (request.status, request.decision) == ("decided", "edit")
    assert Allowance.objects.get().extra_tokens == 5_000
    request.run.refresh_from_db()
    assert request.run.status == "queued"


def test_the_queues_page_shows_and_decides_it() -> None:
    user = make_user()
    make_agent(user)
    request = asked(user)
    owner: Client = client_of(user)
    page = owner.get(f"/approvals/{request.pk}/").content.decode()
    assert "Give more tokens" in page
    assert "Only users with the permission to change budgets can raise this budget" in page
    url = f"/approvals/{request.pk}/decide/"
    data = {"decision": "approve", "digest": request.digest}
    assert owner.post(url, data, headers={"accept": "application/json"}).status_code == 403
    boss = client_of(staff("change_budget"))
    page = boss.get(f"/approvals/{request.pk}/").content.decode()
    assert "Give this much" in page
    assert "{&quot;more_tokens&quot;: 100}" in page
    assert boss.post(url, data, headers={"accept": "application/json"}).status_code == 200
    assert Allowance.objects.get().extra_tokens == 100
    assert Agent.objects.count() == 1
