"""Budgets by REST: the same permissions, checks and audit as in the admin."""

from __future__ import annotations

import json

import pytest

from agents.features.budgets.models import Budget
from agents.models import AuditEntry
from tests.agents.api.managed.rows import operator, patch, post
from tests.agents.api.rows import client_for, make_agent, make_user, problem_of

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
URL = "/api/v1/budgets"
ALL = ("view_budget", "add_budget", "change_budget", "delete_budget")


def test_a_program_makes_reads_changes_and_removes_a_budget() -> None:
    make_agent()
    client = operator(*ALL)
    made = post(client, URL, {"agent": "writer", "period": "day", "max_cost": "1.50"})
    assert made.status_code == 201, made.content
    budget = made.json()
    assert (budget["agent"], budget["user"], budget["max_cost"]) == ("writer", None, "1.500000")
    where = made["Location"]
    assert client.get(where).json() == budget
    assert client.get(f"{URL}?agent=writer").json()["results"] == [budget]
    assert client.get(f"{URL}?agent=other").json()["results"] == []
    changed = patch(client, where, {"max_tokens": 900})
    assert (changed.status_code, changed.json()["max_tokens"]) == (200, 900)
    assert changed.json()["max_cost"] == "1.500000"
    assert client.delete(where).status_code == 204
    assert client.get(where).status_code == 404
    actions = AuditEntry.objects.order_by("id").values_list("action", "door", "actor")
    said = [each for each in actions if each[0].startswith("budget")]
    assert said == [
        ("budget.created", "api", "olga"),
        ("budget.changed", "api", "olga"),
        ("budget.removed", "api", "olga"),
    ]


def test_the_same_request_with_the_same_key_makes_one_budget() -> None:
    make_agent()
    client = operator(*ALL)
    body = {"agent": "writer", "period": "day", "max_tokens": 5}
    keyed = {"Idempotency-Key": "budget-1"}
    first = client.post(URL, body, format="json", headers=keyed)
    again = client.post(URL, body, format="json", headers=keyed)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again["Idempotency-Replayed"] == "true"
    assert again.content == first.content
    assert Budget.objects.count() == 1


def test_a_change_based_on_an_old_state_is_refused() -> None:
    make_agent()
    client = operator(*ALL)
    made = post(client, URL, {"agent": "writer", "period": "day", "max_tokens": 5})
    read = client.get(made["Location"])
    assert read["ETag"] == made["ETag"]
    first = patch(client, made["Location"], {"max_tokens": 6}, **{"If-Match": read["ETag"]})
    assert first.status_code == 200
    late = patch(client, made["Location"], {"max_tokens": 7}, **{"If-Match": read["ETag"]})
    assert (late.status_code, problem_of(late)["code"]) == (412, "stale")
    gone = client.delete(made["Location"], headers={"If-Match": read["ETag"]})
    assert (gone.status_code, problem_of(gone)["code"]) == (412, "stale")
    assert Budget.objects.get().max_tokens == 6
    fresh = {"If-Match": first["ETag"]}
    assert client.delete(made["Location"], headers=fresh).status_code == 204


@pytest.mark.parametrize(
    ("method", "needed"),
    [("get", "view"), ("post", "add"), ("patch", "change"), ("delete", "delete")],
)
def test_each_method_needs_the_permission_of_the_admin(method: str, needed: str) -> None:
    budget = Budget.objects.create(agent=make_agent(), period="day", max_tokens=5)
    others = [name for name in ALL if name not in (f"{needed}_budget",)]
    # Who may change a budget may see it, as in the admin.
    if needed == "view":
        others.remove("change_budget")
    client = operator(*others)
    url = URL if method in ("get", "post") else f"{URL}/{budget.pk}"
    body = {"agent": "writer", "period": "day", "max_tokens": 1} if method == "post" else {}
    refused = client.generic(method.upper(), url, json.dumps(body), "application/json")
    assert (refused.status_code, problem_of(refused)["code"]) == (403, "not_allowed")
    assert f"{needed}_budget" in problem_of(refused)["detail"]
    assert Budget.objects.get().max_tokens == 5


def test_permissions_without_being_staff_are_not_enough_as_in_the_admin() -> None:
    Budget.objects.create(agent=make_agent(), period="day", max_tokens=5)
    client = client_for(make_user("ann", *ALL))
    assert client.get(URL).status_code == 403
    assert (
        post(client, URL, {"agent": "writer", "period": "day", "max_tokens": 1}).status_code == 403
    )
    assert Budget.objects.count() == 1


def test_wrong_bodies_name_their_field() -> None:
    make_agent()
    client = operator(*ALL)
    for body, field in [
        ({"agent": "nobody", "period": "day", "max_tokens": 1}, "agent"),
        ({"agent": "writer", "period": "week", "max_tokens": 1}, "period"),
        ({"agent": "writer", "period": "day", "max_tokens": -1}, "max_tokens"),
        ({"agent": "writer", "period": "day", "max_token": 1}, "max_token"),
        ({"agent": "writer", "period": "", "max_tokens": 1}, "period"),
        ({"agent": "writer", "period": "day"}, "body"),
        ({"period": "day", "max_tokens": 3}, "body"),
    ]:
        refused = post(client, URL, body)
        assert refused.status_code == 400, (body, refused.content)
        assert field in problem_of(refused)["errors"], (body, refused.content)
    assert not Budget.objects.exists()


def test_fields_that_the_admin_fixes_are_refused_and_not_ignored() -> None:
    budget = Budget.objects.create(agent=make_agent(), period="day", max_tokens=5)
    make_agent("other")
    client = operator(*ALL)
    refused = patch(client, f"{URL}/{budget.pk}", {"agent": "other", "max_tokens": 6})
    assert (refused.status_code, problem_of(refused)["code"]) == (403, "field_not_allowed")
    budget.refresh_from_db()
    assert (budget.of, budget.max_tokens) == ("Writer", 5)
    same = patch(client, f"{URL}/{budget.pk}", {"agent": "writer", "max_tokens": 6})
    assert same.status_code == 200
