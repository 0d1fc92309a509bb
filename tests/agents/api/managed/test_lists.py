"""Lists of managed objects: pages, filters, and the number of queries."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.features.budgets.actions import save_budget
from agents.features.budgets.models import Budget
from tests.agents.api.managed.rows import operator
from tests.agents.api.rows import APIClient, make_agent, make_user, problem_of

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
API = "/api/v1"


def queries_of(client: APIClient, url: str) -> int:
    client.get(url)
    with CaptureQueriesContext(
        connection,
    ) as taken:
        assert client.get(url).status_code == 200
    return len(taken)


def test_a_longer_list_needs_no_further_queries() -> None:
    client = operator("view_budget", "view_user", "view_group")
    few, urls = {}, [f"{API}/budgets", f"{API}/users", f"{API}/groups"]

    def add(number: int) -> None:
        user = make_user(f"user{number}", "view_agent", "add_agent")
        group = Group.objects.create(name=f"group{number}")
        group.permissions.add(Permission.objects.get(codename="view_agent"))
        user.groups.add(group)
        agent = make_agent(f"agent{number}")
        save_budget(Budget(agent=agent, user=user, period="day", max_tokens=5))

    add(0)
    for url in urls:
        few[url] = queries_of(client, url)
    for number in range(1, 6):
        add(number)
    for url in urls:
        assert queries_of(client, url) <= few[url], url


def test_a_list_has_pages_and_refuses_unknown_parameters() -> None:
    client = operator("view_user")
    for name in ("a", "b", "c"):
        make_user(name)
    names, cursor = [], ""
    while True:
        page = client.get(f"{API}/users?limit=2{cursor}").json()
        names += [row["username"] for row in page["results"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert names == list(User.objects.order_by("pk").values_list("username", flat=True))
    for query in ("limit=0", "nme=a", "enabled=maybe", "password__startswith=x", "cursor=x"):
        refused = client.get(f"{API}/users?{query}")
        assert refused.status_code == 400, query
        assert problem_of(refused)
